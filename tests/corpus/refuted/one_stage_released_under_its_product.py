# verdict: refuted I10
"""One tile of each operand and two barriers: released while the product reads them."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, barrier, bf16, block_id, ceil_div, copy, elected, eq, f32,
    kernel, loop, mma, registers, role, shared, sm_90a, tag, tma, warpgroup, wgmma,
)


@kernel(target=sm_90a, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0)
    mm = wgmma(bf16, n=16)
    a = shared(bf16, (64, 16), swizzle=32)
    b = shared(bf16, (16, 16), swizzle=32)
    full = barrier(1)
    empty = barrier(1)
    m, n = block_id((ceil_div(M, 64), ceil_div(N, 16)))
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for k in loop(depth):
            empty.wait(k - 1)
            full.arrive(bytes=(64 + 16) * 16 * 2)
            copy(A.tile((64, 16), (m, k)), a, via=tma, signal=full, edge=0)
            copy(B.tile((16, 16), (n, k)), b, via=tma, signal=full, edge=0)

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for k in loop(depth):
            full.wait(k)
            mma(mm, acc, a, b, init=eq(k, 0))
            with elected():
                empty.arrive()
            wgmma.wait(0)
        assert_covers(acc.tag.k, 0, K)
        copy(acc.to(bf16), C.tile((64, 16), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
