"""GEMM with a fused bias and GELU epilogue: C = gelu(A @ B^T + bias)."""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from argus.kernels.epilogues import CDNA3, Config, biased, fetch_of, fused
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.epilogues import CUBIC, LINEAR, with_bias_gelu
from argus.kernels.schedules.hopper import Hopper
from argus.language import Int, Tensor, Value, bf16, f32, kernel, tanh

CONFIGS: dict[str, Config] = {
    "by_rows": Hopper(),
    "pairs": Hopper(cluster=(2, 1), group=8),
    "columns_192": Hopper(bn=192, cluster=(2, 1), whole=True),
    "columns_128": Hopper(bn=128, stages=6, cluster=(1, 2)),
    **CDNA3,
}


@kernel(configs=CONFIGS)
def gemm_bias_gelu(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], bias: Tensor["N", f32], C: Tensor["M N", bf16], *, cfg: Config
) -> None:
    """C = gelu(A @ B^T + bias)."""
    problem = Contraction(A, B, C)
    x = biased(problem, bias)

    def gelu(m: Int, n: Int) -> Value:
        half = x(m, n) * 0.5
        return half * (1 + tanh(half * (half * half * CUBIC + LINEAR)))

    fused(problem, cfg, with_bias_gelu(bias, fetch_of(cfg)), gelu)
