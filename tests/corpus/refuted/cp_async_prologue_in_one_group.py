# verdict: refuted I31
"""Three stages filled by `cp.async`: both stages of the prologue are in one group, which the first wait leaves out."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, cp_async, eq, f32, fence,
    kernel, loop, mma, registers, shared, sm_90a, spread, sync, tag, wgmma, when,
)


@kernel(target=sm_90a, threads=128)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0)
    mm = wgmma(bf16, n=32)
    by_a, by_b = (spread((rows, 32), threads=128, vector=8) for rows in (64, 32))
    a = shared(bf16, (3, 64, 32), swizzle=64)
    b = shared(bf16, (3, 32, 32), swizzle=64)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 32)))
    depth = ceil_div(K, 32)
    acc = registers(f32, mm.C)

    def start(k):
        copy(A.tile((64, 32), (m, k)), a[k % 3], via=cp_async, by=by_a, edge=0)
        copy(B.tile((32, 32), (n, k)), b[k % 3], via=cp_async, by=by_b, edge=0)

    for k in range(2):
        with when(k < depth):
            start(k)
    cp_async.commit()
    for k in loop(depth):
        cp_async.wait(1)
        fence("async proxy")
        sync()
        mma(mm, acc, a[k % 3], b[k % 3], init=eq(k, 0))
        with when(k + 2 < depth):
            start(k + 2)
        cp_async.commit()
        wgmma.wait(0)
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C.tile((64, 32), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
