# verdict: proved
"""Three warpgroups share each tile and issue their products in turn, by order barriers in every trip."""

from argus.language import (
    Ring, Tensor, Turns, assert_covers, assert_written_once, assume, bf16, ceil_div, copy, eq, f32, kernel, loop, mma,
    persistent, registers, role, shared, sm_90a, tag, tma, warpgroup, warpgroups, wgmma,
)


@kernel(target=sm_90a, threads=512)
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= 1, K % 8 == 0, N % 8 == 0, M <= 2**18, N <= 2**18)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (192, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    turns = Turns(3)
    tiles = persistent((ceil_div(M, 192), ceil_div(N, 16)), blocks=1)
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((192, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((16, 16), (n, k)), slot.b, via=tma, edge=0)

    with role("math", warpgroups(1, 2, 3), registers=152) as wg:
        acc = registers(f32, mm.C)
        for m, n in tiles:
            for k in loop(depth):
                with turns(wg):
                    slot = ring.wait()
                    mma(mm, acc, slot.a.tile((64, 16), (wg, 0)), slot.b, init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
            assert_covers(acc.tag.k, 0, K)
            copy(acc.to(bf16), C.tile((64, 16), (3 * m + wg, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
