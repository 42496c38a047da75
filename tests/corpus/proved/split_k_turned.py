# verdict: proved
"""C^T = B @ A^T, split-K in a two-block cluster: each block sums half of K, then reduces half of the rows of A."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, barrier, bf16, block_id, ceil_div, copy, elected, eq,
    f32, kernel, load, loop, mma, registers, role, shared, sm_90a, spread, st_global_b16, sync, tag, tma, warpgroup,
    wgmma,
)


@kernel(target=sm_90a, threads=256, cluster=(2, 1, 1))
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, ceil_div(M, 16) * ceil_div(N, 64) < 1 << 20)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (16, 16), swizzle=32), b=shared(bf16, (64, 16), swizzle=32))
    sums = shared(f32, (2, 64, 8), swizzle=32)
    come = barrier(2)
    rank, n, m = block_id((2, ceil_div(N, 64), ceil_div(M, 16)))
    depth = ceil_div(K, 32)

    with role("load", warpgroup(0).elected):
        for k in loop(depth):
            with ring.fill() as slot:
                copy(A.tile((16, 16), (m, rank * depth + k)), slot.a, via=tma, edge=0)
                copy(B.tile((64, 16), (n, rank * depth + k)), slot.b, via=tma, edge=0)

    with role("math", warpgroup(1)):
        acc = registers(f32, mm.C)
        for k in loop(depth):
            slot = ring.wait()
            mma(mm, acc, slot.b, slot.a, init=eq(k, 0))
            wgmma.wait(0)
            ring.release()
        for to in range(2):
            copy(acc.tile((64, 8), (0, to)), sums[rank].of(to))
        sync()
        with elected():
            for to in range(2):
                come[0].of(to).arrive()
        come[0].wait(0)
        by = spread((8, 64), threads=128, vector=1)
        total = load(sums[0].T, by) + load(sums[1].T, by)
        assert_covers(total.tag.k, 0, K)
        copy(total.to(bf16), C.tile((8, 64), (2 * m + rank, n)), via=st_global_b16, edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
