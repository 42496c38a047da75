# verdict: refuted I3
"""The loop ends with the shorter operand, which may be B: sums over all of K are claimed."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, eq, f32, gfx942, global_load,
    kernel, loop, mfma, mfma_f32_32x32x8_bf16, minimum, mma, registers, tag, vmem,
)


@kernel(target=gfx942, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N L", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, L) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 32, K % 32 == 0, L >= 32, L % 32 == 0)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(2, 2), tile=(64, 64), k=32, k_run=8)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 64)))
    a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)
    for k in loop(minimum(K, L) // 32):
        copy(A.tile((64, 32), (m, k)), a, via=global_load, edge=0)
        copy(B.tile((64, 32), (n, k)), b, via=global_load, edge=0)
        vmem.wait(0)
        mma(mm, acc, a, b, init=eq(k, 0))
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C.tile((64, 64), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
