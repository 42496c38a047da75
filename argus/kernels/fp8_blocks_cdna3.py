"""FP8 GEMM with block scales on MI300X: C = A @ B^T of e4m3fnuz, scales per 1 x 128 of A and per 128 x 128 of B."""

from __future__ import annotations

from argus.kernels.schedules.cdna3_blocks import BLOCK, add_related, block_scales
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved, cdna3_interleaved
from argus.kernels.schedules.contraction import Contraction
from argus.language import (
    Int,
    Tensor,
    Value,
    assert_equals,
    assume,
    bf16,
    ceil_div,
    e4m3fnuz,
    elements,
    eq,
    f32,
    kernel,
    minimum,
    tag,
    total,
)

CONFIGS: dict[str, Cdna3Interleaved] = {
    "interleaved_128": Cdna3Interleaved(bm=128, bn=128, bk=BLOCK, agprs=False),
    "interleaved_any": Cdna3Interleaved(bm=128, bn=128, bk=BLOCK, wide=False, agprs=False),
}


@kernel(configs=CONFIGS)
def gemm_fp8_fnuz_blocks(
    A: Tensor["M K", e4m3fnuz],
    B: Tensor["N K", e4m3fnuz],
    scale_a: Tensor["KB M", f32],
    scale_b: Tensor["NB KB", f32],
    C: Tensor["M N", bf16],
    *,
    cfg: Cdna3Interleaved,
) -> None:
    """C[m, n] = sum over k of A[m, k] scale_a[k // 128, m] * B[n, k] scale_b[n // 128, k // 128]."""
    tag(scale_a, lambda kb, m: dict(m=m, kb=kb))
    tag(scale_b, lambda nb, kb: dict(nb=nb, kb=kb))
    problem = Contraction(A, B, C)
    depth, columns = ceil_div(A.shape[1], BLOCK), ceil_div(B.shape[0], BLOCK)
    assume(eq(scale_a.shape[0], depth), eq(scale_b.shape[0], columns))
    cdna3_interleaved(
        problem, cfg, scales=lambda at, mm: block_scales(lambda k: scale_a[k], scale_b, at, mm, cfg, add_related)
    )
    problem.finish()
    a, b, of_a, of_b = map(elements, (A, B, scale_a, scale_b))

    def value(m: Int, n: Int) -> Value:
        def block(k: Int) -> Value:
            over = BLOCK * k, minimum(A.shape[1], BLOCK * k + BLOCK)
            return total(lambda i: a(m, i) * b(n, i), over=over) * (of_a(k, m) * of_b(n // BLOCK, k))

        return total(block, over=depth)

    assert_equals(C, value)
