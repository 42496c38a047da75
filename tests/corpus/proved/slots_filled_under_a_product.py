# verdict: proved
"""Two buffers in the unswizzled (interleaved) wgmma layout: one is filled while a product reads the other."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, eq, f32, fence, kernel, loop, mma,
    registers, shared, sm_90a, spread, sync, tag, wgmma, when,
)


@kernel(target=sm_90a, threads=128)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0)
    mm = wgmma(bf16, n=32)
    by_a, by_b = (spread((rows, 32), threads=128, vector=8) for rows in (64, 32))
    a = shared(bf16, (2, 64, 32), swizzle=16)
    b = shared(bf16, (2, 32, 32), swizzle=16)
    next_a = registers(bf16, by_a)
    next_b = registers(bf16, by_b)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 32)))
    depth = ceil_div(K, 32)
    acc = registers(f32, mm.C)

    def fetch(k):
        copy(A.tile((64, 32), (m, k)), next_a, edge=0)
        copy(B.tile((32, 32), (n, k)), next_b, edge=0)

    def put(k):
        copy(next_a, a[k % 2])
        copy(next_b, b[k % 2])
        fence("async proxy")

    fetch(0)
    put(0)
    sync()
    for k in loop(depth):
        with when(k + 1 < depth):
            fetch(k + 1)
        mma(mm, acc, a[k % 2], b[k % 2], init=eq(k, 0))
        with when(k + 1 < depth):
            put(k + 1)
        wgmma.wait(0)
        sync()
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C.tile((64, 32), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
