# verdict: proved
"""On sm_90a, groups of `cp_async` and products of `wgmma` are waited for before what needs them."""

from argus.language import (
    Tensor, assert_equals, assume, bf16, block_id, ceil_div, copy, cp_async, eq, f32, fence, kernel, loop, mma,
    registers, shared, sm_90a, spread, sync, total, wgmma,
)


@kernel(target=sm_90a, threads=128, waits="automatic")
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    assume(K >= 1, K % 8 == 0, N % 2 == 0)
    mm = wgmma(bf16, n=64)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 64)))
    a, b = (shared(bf16, (64, 64), swizzle=128) for _ in range(2))
    by = spread((64, 64), vector=8)
    acc = registers(f32, mm.C)
    for k in loop(ceil_div(K, 64)):
        copy(A.tile((64, 64), (m, k)), a, via=cp_async, by=by, edge=0)
        copy(B.tile((64, 64), (n, k)), b, via=cp_async, by=by, edge=0)
        cp_async.commit()
        fence("async proxy")
        sync()
        mma(mm, acc, a, b, init=eq(k, 0))
        sync()
    copy(acc.to(bf16), C.tile((64, 64), (m, n)), edge=0)
    assert_equals(C, lambda m, n: total(lambda k: A[m, k] * B[n, k], over=K))
