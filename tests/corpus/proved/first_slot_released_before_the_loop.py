# verdict: proved
"""Each tile's first product reads a slot of a ring of its own, which is released before the loop over the others."""

from argus.language import (
    Ring, Tensor, assert_equals, assume, bf16, ceil_div, copy, elements, f32, kernel, loop, mma, persistent, registers, role,
    shared, sm_90a, tma, total, warpgroup, wgmma,
)


@kernel(target=sm_90a, threads=256)
def two_sums(
    A: Tensor["M K", bf16], B: Tensor["N K", bf16], P: Tensor["M 16", bf16], Q: Tensor["N 16", bf16], C: Tensor["M N", bf16]
):
    (M, K), N = A.shape, B.shape[0]
    assume(K >= 1, K % 8 == 0, N % 8 == 0, M <= 2**18, N <= 2**18)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    first = Ring(1, p=shared(bf16, (64, 16), swizzle=32), q=shared(bf16, (16, 16), swizzle=32))
    tiles = persistent((ceil_div(M, 64), ceil_div(N, 16)), blocks=1)
    depth = ceil_div(K, 16)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            with first.fill() as slot:
                copy(P.tile((64, 16), (m, 0)), slot.p, via=tma, edge=0)
                copy(Q.tile((16, 16), (n, 0)), slot.q, via=tma, edge=0)
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((64, 16), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((16, 16), (n, k)), slot.b, via=tma, edge=0)

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        for m, n in tiles:
            slot = first.wait()
            mma(mm, acc, slot.p, slot.q, init=True)
            wgmma.wait(0)
            first.release()
            for k in loop(depth):
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b)
                wgmma.wait(0)
                ring.release()
            copy(acc.to(bf16), C.tile((64, 16), (m, n)), edge=0)
    a, b, p, q = map(elements, (A, B, P, Q))
    assert_equals(
        C, lambda m, n: total(lambda k: p(m, k) * q(n, k), over=16) + total(lambda k: a(m, k) * b(n, k), over=K)
    )
