# verdict: proved
"""Products of four warps by mma.sync: operands staged by cp.async, read by ldmatrix."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, cp_async, eq, f32, kernel,
    ldmatrix, loop, mfma, mma, mma_m16n8k16_bf16, registers, shared, sm_90a, spread, sync, tag,
)


@kernel(target=sm_90a, threads=128)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0, M * K <= 1 << 28, N * K <= 1 << 28)
    mm = mfma(mma_m16n8k16_bf16).over(waves=(2, 2), tile=(64, 32), k=32)
    held_a, held_b = shared(bf16, (64, 32), swizzle=64), shared(bf16, (32, 32), swizzle=64)
    a, b, acc = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, mm.C)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 32)))
    for k in loop(ceil_div(K, 32)):
        copy(A.tile((64, 32), (m, k)), held_a, via=cp_async, by=spread((64, 32), threads=128, vector=8), edge=0)
        copy(B.tile((32, 32), (n, k)), held_b, via=cp_async, by=spread((32, 32), threads=128, vector=8), edge=0)
        cp_async.commit()
        cp_async.wait(0)
        sync()
        copy(held_a, a, via=ldmatrix.x4)
        copy(held_b, b, via=ldmatrix.x2)
        mma(mm, acc, a, b, init=eq(k, 0))
        sync()
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C.tile((64, 32), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
