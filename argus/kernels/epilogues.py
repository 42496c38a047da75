"""GEMM with fused epilogues: bias, bias and SiLU, a scale from device memory."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from collections.abc import Callable

from argus.kernels.schedules.clustered import hopper_clustered
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.hopper import Deferred, Epilogue, Hopper, TileCoord, hopper_cooperative, hopper_pingpong
from argus.language import Fragment, Tensor, bf16, copy, f32, fma, kernel, load, registers, tag, tanh

CONFIGS = {
    "by_rows": Hopper(),
    "pairs": Hopper(cluster=(2, 1), group=8),
    "columns_128": Hopper(bn=128, stages=6, cluster=(1, 2)),
    "pingpong": Hopper(bm=64, pingpong=True, group=16),
}


def silu(x: Fragment) -> Fragment:
    """x * sigmoid(x); with sm_90a's tanh.approx the error is within 2^-12 |x|, plus rounding."""
    half = x * 0.5
    return fma(half, tanh(half), half)


def with_bias(bias: Tensor, then: Callable[[Fragment], Fragment]) -> Epilogue:
    """The epilogue then(acc + bias), bias along the columns of C; each thread loads the columns of its accumulators."""

    def epilogue(acc: Fragment, at: TileCoord) -> Deferred:
        held = registers(f32, acc.layout.axis(1))
        copy(bias.tile((acc.shape[1],), (at[1],)), held, edge=0)
        return lambda: then(acc + held)

    return epilogue


@kernel(configs=CONFIGS)
def gemm_bias(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16], *, cfg: Hopper
) -> None:
    """C = A @ B^T + bias."""
    tag(bias, lambda n: dict(n=n))
    fused(Contraction(A, B, C), cfg, with_bias(bias, lambda x: x))


@kernel(configs=CONFIGS)
def gemm_bias_silu(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16], *, cfg: Hopper
) -> None:
    """C = silu(A @ B^T + bias)."""
    tag(bias, lambda n: dict(n=n))
    fused(Contraction(A, B, C), cfg, with_bias(bias, silu))


@kernel(configs=CONFIGS)
def gemm_scaled(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], alpha: Tensor["1", f32], C: Tensor["M N", bf16], *, cfg: Hopper
) -> None:
    """C = alpha * (A @ B^T), with alpha in device memory."""
    loaded: list[Fragment] = []

    def epilogue(acc: Fragment, at: TileCoord) -> Deferred:
        del at
        if not loaded:  # once per tile, for all of its parts
            loaded.append(load(alpha[0], acc.layout.axis()))
        return lambda: acc * loaded[0]

    fused(Contraction(A, B, C), cfg, epilogue)


def fused(problem: Contraction, cfg: Hopper, epilogue: Epilogue) -> None:
    """Trace the schedule of a configuration with an epilogue, and state the claim."""
    if cfg.pingpong:
        hopper_pingpong(problem, cfg, epilogue)
    elif len(cfg.cluster) > 1:
        hopper_clustered(problem, cfg, epilogue)
    else:
        hopper_cooperative(problem, cfg, epilogue)
    problem.finish()
