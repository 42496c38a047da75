# verdict: refuted I40
"""Two products of 32 of K each are added in one tile, which declares 32."""

from argus.language import (
    Tensor, assert_equals, assume, bf16, block_id, ceil_div, copy, f32, fence, kernel, ld_global_b16, loop,
    mma, registers, shared, sm_90a, spread, sync, total, wgmma, zeros,
)


@kernel(target=sm_90a, threads=128)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", f32]):
    (M, K), (N, _) = A.shape, B.shape
    bm, bn, bk = 64, 16, 64
    assume(K >= 1, M <= 65536, N <= 65536, K <= 65536, N % 2 == 0)
    mm = wgmma(bf16, n=bn)
    slot_a, slot_b = shared(bf16, (bm, bk), swizzle=64), shared(bf16, (bn, bk), swizzle=64)
    a = registers(bf16, spread((bm, bk), threads=128, vector=2))
    b = registers(bf16, spread((bn, bk), threads=128, vector=2))
    part = registers(f32, mm.C, products=32)
    sums = zeros(f32, mm.C)
    m, n = block_id((ceil_div(M, bm), ceil_div(N, bn)))
    for k in loop(ceil_div(K, bk)):
        copy(A.tile((bm, bk), (m, k)), a, via=ld_global_b16, edge=0)
        copy(B.tile((bn, bk), (n, k)), b, via=ld_global_b16, edge=0)
        copy(a, slot_a)
        copy(b, slot_b)
        fence("async proxy")
        sync()
        mma(mm, part, slot_a.tile((bm, 32), (0, 0)), slot_b.tile((bn, 32), (0, 0)), init=True)
        mma(mm, part, slot_a.tile((bm, 32), (0, 1)), slot_b.tile((bn, 32), (0, 1)))
        wgmma.wait(0)
        sync()
        sums += part
    copy(sums, C.tile((bm, bn), (m, n)), edge=0)
    assert_equals(C, lambda r, c: total(lambda j: A[r, j] * B[c, j], over=K))
