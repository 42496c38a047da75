"""C = gelu(A @ B^T + bias): what follows the products is done to the sums while they are in registers."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from argus.kernels.schedules.clustered import hopper_clustered
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.hopper import Hopper, Late, Place, hopper_cooperative
from argus.language import Fragment, Tensor, bf16, copy, f32, fma, kernel, registers, tag, tanh

_LINEAR, _CUBIC = 2 * 0.7978845608, 8 * 0.0356774081
"""Twice the square root of 2 / pi, and eight times that times 0.044715 [Hendrycks 2016, section 2]: of half of x."""


def gelu(half: Fragment) -> Fragment:
    """Of twice `half`, in its tanh form; with the tangent of sm_90a within 2^-12 of |x| beside its rounding.

    Six instructions an element with the sum that `half` is, of which the tangent takes as long as the others together.
    """
    return fma(half, tanh(half * fma(half * half, _CUBIC, _LINEAR)), half)


CONFIGS = {
    "by_rows": Hopper(),
    "pairs": Hopper(cluster=(2, 1), group=8),
    "columns_192": Hopper(bn=192, cluster=(2, 1), whole=True),
    "columns_128": Hopper(bn=128, stages=6, cluster=(1, 2)),
}


@kernel(configs=CONFIGS)
def gemm_bias_gelu(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16], *, cfg: Hopper
) -> None:
    """The family's claim; the verdict tells the whole formula of an element."""
    tag(bias, lambda n: dict(n=n))
    problem = Contraction(A, B, C)

    def fuse(acc: Fragment, at: Place) -> Late:
        held = registers(f32, acc.layout.axis(1))  # each thread the columns that it has sums of
        copy(bias.tile((acc.shape[1],), (at[1],)), held, edge=0)
        return lambda: gelu(fma(acc, 0.5, held * 0.5))

    if len(cfg.cluster) > 1:
        hopper_clustered(problem, cfg, fuse)
    else:
        hopper_cooperative(problem, cfg, fuse)
    problem.finish()
