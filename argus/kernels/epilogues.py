"""What else is done to the sums of C = A @ B^T while they are in registers: bias, SiLU, a scale from the device."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from collections.abc import Callable

from argus.kernels.schedules.clustered import hopper_clustered
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.hopper import Fuse, Hopper, Late, Place, hopper_cooperative, hopper_pingpong
from argus.language import Fragment, Tensor, bf16, copy, f32, fma, kernel, load, registers, tag, tanh

CONFIGS = {
    "by_rows": Hopper(),
    "pairs": Hopper(cluster=(2, 1), group=8),
    "columns_128": Hopper(bn=128, stages=6, cluster=(1, 2)),
    "pingpong": Hopper(bm=64, pingpong=True, group=16),
}


def silu(x: Fragment) -> Fragment:
    """x times its logistic function; with the tangent of sm_90a within 2^-12 of |x| beside its rounding."""
    half = x * 0.5
    return fma(half, tanh(half), half)


def with_bias(bias: Tensor, then: Callable[[Fragment], Fragment]) -> Fuse:
    """What becomes of sums and a vector along the columns of C: each thread loads the columns that it has sums of."""

    def fuse(acc: Fragment, at: Place) -> Late:
        held = registers(f32, acc.layout.axis(1))
        copy(bias.tile((acc.shape[1],), (at[1],)), held, edge=0)
        return lambda: then(acc + held)

    return fuse


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
    """C = alpha * (A @ B^T), alpha a number on the device."""
    loaded: list[Fragment] = []

    def fuse(acc: Fragment, at: Place) -> Late:
        del at
        if not loaded:  # once a tile, for all of its parts
            loaded.append(load(alpha[0], acc.layout.axis()))
        return lambda: acc * loaded[0]

    fused(Contraction(A, B, C), cfg, fuse)


def fused(problem: Contraction, cfg: Hopper, fuse: Fuse) -> None:
    """A product by the schedule of a configuration, with its claim."""
    if cfg.pingpong:
        hopper_pingpong(problem, cfg, fuse)
    elif len(cfg.cluster) > 1:
        hopper_clustered(problem, cfg, fuse)
    else:
        hopper_cooperative(problem, cfg, fuse)
    problem.finish()
