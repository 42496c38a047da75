# verdict: rejected E230
"""A cluster takes two of MB blocks of 128 rows; nothing says that MB is even."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, barrier, bf16, block_id, ceil_div, cluster, copy, elected, eq,
    f32, fence, kernel, loop, mma, registers, role, shared, sm_90a, tag, tma, warpgroup, warpgroups, wgmma,
)


@kernel(target=sm_90a, threads=384, cluster=(2, 1))
def gemm(A: Tensor["MB 128 K", bf16], B: Tensor["N K", bf16], C: Tensor["MB 128 N", bf16]):
    (MB, _, K), (N, _) = A.shape, B.shape
    tag(A, lambda g, m, k: dict(g=g, m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0, MB * ceil_div(N, 16) < 1 << 24)
    mm = wgmma(bf16, n=16)
    a = shared(bf16, (2, 128, 16), swizzle=32)
    b = shared(bf16, (2, 16, 16), swizzle=32)
    full = barrier(1, of=2)
    empty = barrier(4, of=2)
    fence("barrier init")
    cluster.arrive()
    cluster.wait()
    g, n = block_id((MB, ceil_div(N, 16)))
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for k in loop(depth):
            empty[k % 2].wait(k // 2 - 1)
            full[k % 2].arrive(bytes=(128 + 16) * 16 * 2)
            copy(A[g].tile((128, 16), (0, k)), a[k % 2], via=tma, signal=full[k % 2], edge=0)
            half, mine = B.tile((16, 16), (n, k)).part(0, cluster.rank, 2), b[k % 2].part(0, cluster.rank, 2)
            copy(half, mine, via=tma.multicast((0, 1)), signal=full[k % 2], edge=0)

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc = registers(f32, mm.C)
        for k in loop(depth):
            full[k % 2].wait(k // 2)
            mma(mm, acc, a[k % 2].tile((64, 16), (wg, 0)), b[k % 2], init=eq(k, 0))
            wgmma.wait(0)
            with elected():
                empty[k % 2].of(0).arrive()
                empty[k % 2].of(1).arrive()
        assert_covers(acc.tag.k, 0, K)
        copy(acc.to(bf16), C[g].tile((64, 16), (wg, n)), edge=0)
    cluster.sync()
    assert_written_once(C, lambda g, m, n: dict(g=g, m=m, n=n))
