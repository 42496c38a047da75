# verdict: refuted I11
"""The output is stored while the last wgmma may still write the accumulator: a `wgmma.wait` is missing."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, barrier, bf16, block_id, ceil_div, copy, elected, eq, f32,
    kernel, loop, mma, registers, role, shared, sm_90a, tag, tma, warpgroup, warpgroups, wgmma, when,
)


@kernel(target=sm_90a, threads=384)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0)
    mm = wgmma(bf16, n=16)
    a = shared(bf16, (3, 128, 16), swizzle=32)
    b = shared(bf16, (3, 16, 16), swizzle=32)
    full = barrier(1, of=3)
    empty = barrier(2, of=3)
    m, n = block_id((ceil_div(M, 128), ceil_div(N, 16)))
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for k in loop(depth):
            empty[k % 3].wait(k // 3 - 1)
            full[k % 3].arrive(bytes=(128 + 16) * 16 * 2)
            copy(A.tile((128, 16), (m, k)), a[k % 3], via=tma, signal=full[k % 3], edge=0)
            copy(B.tile((16, 16), (n, k)), b[k % 3], via=tma, signal=full[k % 3], edge=0)

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc = registers(f32, mm.C)
        for k in loop(depth):
            full[k % 3].wait(k // 3)
            mma(mm, acc, a[k % 3].tile((64, 16), (wg, 0)), b[k % 3], init=eq(k, 0))
            wgmma.wait(1)
            with when(k > 0), elected():
                empty[(k - 1) % 3].arrive()
        with elected():
            empty[(depth - 1) % 3].arrive()
        assert_covers(acc.tag.k, 0, K)
        copy(acc.to(bf16), C.tile((64, 16), (2 * m + wg, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
