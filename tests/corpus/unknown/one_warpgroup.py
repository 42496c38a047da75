# verdict: unknown
"""One warpgroup loads, waits and multiplies: a single buffer, no ring, no roles."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, barrier, bf16, block_id, ceil_div, copy, elected, eq, f32,
    kernel, loop, mma, registers, shared, sm_90a, sync, tag, tma, wgmma,
)


@kernel(target=sm_90a, threads=128)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0)
    mm = wgmma(bf16, n=16)
    a = shared(bf16, (64, 16), swizzle=32)
    b = shared(bf16, (16, 16), swizzle=32)
    full = barrier(1)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 16)))
    acc = registers(f32, mm.C)
    for k in loop(ceil_div(K, 16)):
        with elected():
            full.arrive(bytes=(64 + 16) * 16 * 2)
            copy(A.tile((64, 16), (m, k)), a, via=tma, signal=full, edge=0)
            copy(B.tile((16, 16), (n, k)), b, via=tma, signal=full, edge=0)
        full.wait(k)
        mma(mm, acc, a, b, init=eq(k, 0))
        wgmma.wait(0)
        sync()  # all warps wait for the product before the next tiles arrive
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C.tile((64, 16), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
