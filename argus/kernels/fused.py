"""GEMM with a fused bias and GELU epilogue: C = gelu(A @ B^T + bias)."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from argus.kernels.schedules.clustered import hopper_clustered
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.hopper import Deferred, Hopper, TileCoord, hopper_cooperative
from argus.language import Fragment, Tensor, bf16, copy, f32, fma, kernel, registers, tag, tanh

_LINEAR, _CUBIC = 2 * 0.7978845608, 8 * 0.0356774081
"""2 sqrt(2 / pi) and 8 sqrt(2 / pi) * 0.044715: coefficients of the tanh form in x / 2 [Hendrycks 2016, section 2]."""


def gelu(half: Fragment) -> Fragment:
    """GELU of 2 * half, in its tanh form; with sm_90a's tanh.approx the error is within 2^-12 |x|, plus rounding.

    Six instructions per element, with the addition that makes `half`; the tanh takes as long as the others together.
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
    """C = gelu(A @ B^T + bias)."""
    tag(bias, lambda n: dict(n=n))
    problem = Contraction(A, B, C)

    def epilogue(acc: Fragment, at: TileCoord) -> Deferred:
        held = registers(f32, acc.layout.axis(1))  # each thread: the columns of its accumulators
        copy(bias.tile((acc.shape[1],), (at[1],)), held, edge=0)
        return lambda: gelu(fma(acc, 0.5, held * 0.5))

    if len(cfg.cluster) > 1:
        hopper_clustered(problem, cfg, epilogue)
    else:
        hopper_cooperative(problem, cfg, epilogue)
    problem.finish()
