# verdict: proved
"""Three blocks take the tiles in rounds, every other round from the last block to the first."""

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, ceil_div, copy, eq, f32, kernel, loop, mma,
    persistent, registers, role, shared, sm_90a, tag, tma, warpgroup, wgmma,
)


@kernel(target=sm_90a, threads=256)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0, M <= 2**18, N <= 2**18)
    mm = wgmma(bf16, n=16)
    ring = Ring(1, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    tiles = persistent((ceil_div(M, 64), ceil_div(N, 16)), blocks=3, zigzag=True)
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((16, 16), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for m, n in tiles:
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
            assert_covers(acc.tag.k, 0, K)
            copy(acc.to(bf16), C.tile((64, 16), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
