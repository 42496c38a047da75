"""GEMM of 8-bit integers on MI300X: the exact sums in i32, or these scaled by row and column, in bf16.

K is below 2^17, so that i32 holds every sum: the product of the least numbers, -128, is 2^14.
"""

# ruff: noqa: UP037
# Reason: a name in quotes is the name of a size.

from __future__ import annotations

from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, cdna3_interleaved
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.epilogues import bounded, scaled_by_vectors
from argus.language import Tensor, assert_equals, assume, bf16, elements, f32, i8, i32, kernel, tag

CONFIGS: dict[str, Cdna3Interleaved] = {
    "interleaved": Cdna3Interleaved(bk=128),
    "interleaved_128": Cdna3Interleaved(bm=128, bn=128, bk=128, agprs=False),
    "interleaved_any": Cdna3Interleaved(bm=128, bn=128, bk=128, wide=False, agprs=False),
}


@kernel(configs=CONFIGS)
def gemm_i8(A: Tensor["M K", i8], B: Tensor["N K", i8], C: Tensor["M N", i32], *, cfg: Cdna3Interleaved) -> None:
    """C = A @ B^T, exactly."""
    problem = Contraction(A, B, C)
    cdna3_interleaved(problem, cfg)
    problem.finish()
    assert_equals(C, problem.element)


@kernel(configs=CONFIGS)
def gemm_i8_scaled(
    A: Tensor["M K", i8],
    B: Tensor["N K", i8],
    scale_a: Tensor["M", f32],
    scale_b: Tensor["N", f32],
    C: Tensor["M N", bf16],
    *,
    cfg: Cdna3Interleaved,
) -> None:
    """C[m, n] = scale_a[m] * scale_b[n] * (A @ B^T)[m, n]."""
    problem = Contraction(A, B, C)
    tag(scale_a, lambda m: dict(m=m))
    tag(scale_b, lambda n: dict(n=n))
    assume(*(each.shape[0] < 1 << 30 for each in (scale_a, scale_b)))  # a descriptor's span
    cdna3_interleaved(problem, cfg, scaled_by_vectors(scale_a, scale_b, bounded(single=not cfg.wide)))
    problem.finish()
    of_a, of_b = elements(scale_a), elements(scale_b)
    assert_equals(C, lambda m, n: of_a(m) * of_b(n) * problem.element(m, n))
