# verdict: proved
"""Ping-pong warpgroups with the last ring use of a tile peeled after the loop, inside the same turn."""
from argus.language import (
    Ring, Tensor, Turns, assert_covers, assert_written_once, assume, bf16, ceil_div, copy, f32, kernel, loop, mma,
    persistent, role, shared, sm_90a, tag, tma, warpgroup, warpgroups, wgmma, zeros,
)


@kernel(target=sm_90a, threads=384)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0, ceil_div(M, 64) * ceil_div(N, 16) < 1 << 24)
    mm = wgmma(bf16, n=16)
    ring = Ring(1, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    turns = Turns(2)
    tiles = persistent((ceil_div(M, 64), ceil_div(N, 16)), blocks=1)
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=24):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((16, 16), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroups(1, 2), registers=240) as wg:
        ring.skip(wg * depth)
        for m, n in tiles.every(2, start=wg):
            acc = zeros(f32, mm.C)
            with turns(wg):
                for k in loop(depth - 1):
                    slot = ring.wait()
                    mma(mm, acc, slot.a, slot.b)
                    wgmma.wait(0)
                    ring.release()
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b)
                wgmma.wait(0)
                ring.release()
            ring.skip(depth)
            assert_covers(acc.tag.k, 0, K)
            copy(acc.to(bf16), C.tile((64, 16), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
