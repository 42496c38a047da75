# verdict: proved
"""Two-block cluster on adjacent row tiles: each block loads half of the shared B tile and multicasts it to both."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, ceil_div, cluster, copy, eq, f32, kernel, loop,
    mma, persistent, registers, role, shared, sm_90a, tag, tma, warpgroup, warpgroups, wgmma, when,
)


@kernel(target=sm_90a, threads=384, cluster=(2, 1))
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0, ceil_div(M, 128) * ceil_div(N, 16) < 1 << 24)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (128, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    tiles = persistent((ceil_div(M, 128), ceil_div(N, 16)), blocks=4)
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((128, 16), (m, k)), slot.a, via=tma, edge=0)
                    half, mine = B.tile((16, 16), (n, k)).part(0, cluster.rank, 2), slot.b.part(0, cluster.rank, 2)
                    copy(half, mine, via=tma.multicast((0, 1)), edge=0)
        ring.finish()  # no block exits while its peer may still arrive here

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc = registers(f32, mm.C)
        for m, n in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a.tile((64, 16), (wg, 0)), slot.b, init=eq(k, 0))
                wgmma.wait(1)
                with when(k > 0):
                    ring.release()
            wgmma.wait(0)
            ring.release()
            assert_covers(acc.tag.k, 0, K)
            copy(acc.to(bf16), C.tile((64, 16), (2 * m + wg, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
