"""FP8 GEMM on MI300X with one scale per tensor: C = scale_a * scale_b * (A @ B^T), in bf16.

MI300X multiplies the FNUZ formats: e4m3fnuz has exponent bias 8 instead of 7, so that the same bits are half as much as
in e4m3, and no negative zero [AMD MI300 ISA, data formats].
"""

# ruff: noqa: UP037
# Reason: a number in quotes is an extent.

from __future__ import annotations

from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, cdna3_interleaved
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.epilogues import scaled_by
from argus.language import Tensor, assert_equals, bf16, e4m3fnuz, elements, f32, kernel

CONFIGS: dict[str, Cdna3Interleaved] = {
    "interleaved": Cdna3Interleaved(bk=128),
    "interleaved_128": Cdna3Interleaved(bm=128, bn=128, bk=128, agprs=False),
    "interleaved_any": Cdna3Interleaved(bm=128, bn=128, bk=128, wide=False, agprs=False),
}


@kernel(configs=CONFIGS)
def gemm_fp8_fnuz(
    A: Tensor["M K", e4m3fnuz],
    B: Tensor["N K", e4m3fnuz],
    scale_a: Tensor["1", f32],
    scale_b: Tensor["1", f32],
    C: Tensor["M N", bf16],
    *,
    cfg: Cdna3Interleaved,
) -> None:
    """C = scale_a * scale_b * (A @ B^T)."""
    problem = Contraction(A, B, C)
    cdna3_interleaved(problem, cfg, scaled_by(scale_a, scale_b))
    problem.finish()
    of_a, of_b = elements(scale_a), elements(scale_b)
    assert_equals(C, lambda m, n: of_a(0) * of_b(0) * problem.element(m, n))
