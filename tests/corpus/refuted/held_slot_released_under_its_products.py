# verdict: refuted I10
"""The held slot is released while the last of its products may still be reading it."""
from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, ceil_div, copy, eq, f32, kernel, loop, mma,
    persistent, registers, role, shared, sm_90a, tag, tma, warpgroup, wgmma,
)


@kernel(target=sm_90a, threads=256)
def two_products(
    A: Tensor["M 32", bf16], B: Tensor["N 32", bf16], P: Tensor["M 32", bf16], Q: Tensor["N 32", bf16],
    C: Tensor["M N", bf16], D: Tensor["M N", bf16],
):
    M, N = A.shape[0], B.shape[0]
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    tag(P, lambda m, j: dict(m=m, j=j))
    tag(Q, lambda n, j: dict(n=n, j=j))
    assume(N % 8 == 0, M <= 2**18, N <= 2**18)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    keep = Ring(1, p=shared(bf16, (64, 32), swizzle=64), q=shared(bf16, (16, 32), swizzle=64))
    tiles = persistent((ceil_div(M, 64), ceil_div(N, 16)), blocks=1)
    depth = 2

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            with keep.fill() as slot:
                copy(P.tile((64, 32), (m, 0)), slot.p, via=tma, edge=0)
                copy(Q.tile((16, 32), (n, 0)), slot.q, via=tma, edge=0)
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((16, 16), (n, k)), slot.b, via=tma, edge=0)

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        other = registers(f32, mm.C)
        for m, n in tiles:
            kept = keep.wait()
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b, init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
                mma(mm, other, kept.p.tile((64, 16), (0, k)), kept.q.tile((16, 16), (0, k)), init=eq(k, 0))
            keep.release()
            wgmma.wait(0)
            assert_covers(acc.tag.k, 0, 32)
            assert_covers(other.tag.j, 0, 32)
            copy(acc.to(bf16), C.tile((64, 16), (m, n)), edge=0)
            copy(other.to(bf16), D.tile((64, 16), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
    assert_written_once(D, lambda m, n: dict(m=m, n=n))
