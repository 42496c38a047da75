"""What else is done to the sums of C = A @ B^T while they are in registers: bias, SiLU, a scale from the device."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from argus.kernels.clustered import hopper_clustered
from argus.kernels.contraction import Contraction
from argus.kernels.hopper import Fuse, Hopper, Place, hopper_cooperative, hopper_pingpong
from argus.language import Fragment, Tensor, bf16, copy, exp2, f32, kernel, load, reciprocal, registers, tag

_LOG2_E = 1.4426950408889634
CONFIGS = {
    "by_rows": Hopper(),
    "pairs": Hopper(cluster=(2, 1), group=8),
    "columns_128": Hopper(bn=128, stages=6, cluster=(1, 2)),
    "pingpong": Hopper(bm=64, pingpong=True, group=16),
}


def silu(x: Fragment) -> Fragment:
    """x times its logistic function, by one exponential and one reciprocal."""
    return x * reciprocal(exp2(x * -_LOG2_E) + 1.0)


def under(vector: Tensor, acc: Fragment, at: Place) -> Fragment:
    """A vector along the columns of C, under a part of the sums: each thread has the columns that it has sums of."""
    held = registers(f32, acc.layout.axis(1))
    copy(vector.tile((acc.shape[1],), (at[1],)), held, edge=0)
    return held


@kernel(configs=CONFIGS)
def gemm_bias(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16], *, cfg: Hopper
) -> None:
    """C = A @ B^T + bias."""
    tag(bias, lambda n: dict(n=n))
    fused(Contraction(A, B, C), cfg, lambda acc, at: acc + under(bias, acc, at))


@kernel(configs=CONFIGS)
def gemm_bias_silu(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16], *, cfg: Hopper
) -> None:
    """C = silu(A @ B^T + bias)."""
    tag(bias, lambda n: dict(n=n))
    fused(Contraction(A, B, C), cfg, lambda acc, at: silu(acc + under(bias, acc, at)))


@kernel(configs=CONFIGS)
def gemm_scaled(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], alpha: Tensor["1", f32], C: Tensor["M N", bf16], *, cfg: Hopper
) -> None:
    """C = alpha * (A @ B^T), alpha a number on the device."""
    loaded: list[Fragment] = []

    def fuse(acc: Fragment, at: Place) -> Fragment:
        del at
        if not loaded:  # once a tile, for all of its parts
            loaded.append(load(alpha[0], acc.layout.axis()))
        return acc * loaded[0]

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
