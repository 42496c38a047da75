"""C = gelu(A @ B^T + bias): what follows the products is done to the sums while they are in registers."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from argus.kernels.clustered import hopper_clustered
from argus.kernels.contraction import Contraction
from argus.kernels.hopper import Hopper, Place, hopper_cooperative
from argus.language import Fragment, Tensor, bf16, copy, exp2, f32, kernel, reciprocal, registers, tag

_LINEAR, _CUBIC = -2.302208198, -0.1029432396
"""Twice the square root of 2 / pi times log2(e), downwards, and that times 0.044715 [Hendrycks 2016, section 2]."""


def gelu(x: Fragment) -> Fragment:
    """x times the logistic function of what its tanh form takes, by one exponential and one reciprocal."""
    return x * reciprocal(exp2(x * (x * x * _CUBIC + _LINEAR)) + 1.0)


CONFIGS = {"by_rows": Hopper(), "pairs": Hopper(cluster=(2, 1), group=8)}


@kernel(configs=CONFIGS)
def gemm_bias_gelu(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16], *, cfg: Hopper
) -> None:
    """The family's claim; the verdict tells the whole formula of an element."""
    tag(bias, lambda n: dict(n=n))
    problem = Contraction(A, B, C)

    def fuse(acc: Fragment, at: Place) -> Fragment:
        held = registers(f32, acc.layout.axis(1))  # each thread the columns that it has sums of
        copy(bias.tile((acc.shape[1],), (at[1],)), held, edge=0)
        return gelu(acc + held)

    if len(cfg.cluster) > 1:
        hopper_clustered(problem, cfg, fuse)
    else:
        hopper_cooperative(problem, cfg, fuse)
    problem.finish()
