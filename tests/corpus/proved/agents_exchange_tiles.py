# verdict: proved
"""Two warpgroups double half of 32 columns each, in two shared buffers by turns, and both multiply all of them."""

from argus.language import (
    Ring, Tensor, assert_equals, assume, bf16, ceil_div, copy, elements, eq, f32, fence, kernel, load, loop, mma,
    persistent, registers, role, shared, sm_90a, spread, sync, tma, total, warpgroup, warpgroups, wgmma,
)


@kernel(target=sm_90a, threads=384)
def exchanged(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16]):
    (M, K), (N, _) = A.shape, B.shape
    assume(K >= 1, K % 8 == 0, N % 8 == 0, M <= 2**18, N <= 2**18)
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (64, 32)), b=shared(bf16, (32, 32), swizzle=64))
    both = shared(bf16, (2, 64, 32), swizzle=64)
    tiles = persistent((ceil_div(M, 64), ceil_div(N, 32)), blocks=1)
    depth = ceil_div(K, 32)

    with role("load", warpgroup(0).elected, registers=40):
        for m, n in tiles:
            for k in loop(depth):
                with ring.fill() as slot:
                    copy(A.tile((64, 32), (m, k)), slot.a, via=tma, edge=0)
                    copy(B.tile((32, 32), (n, k)), slot.b, via=tma, edge=0)

    with role("math", warpgroups(1, 2), registers=232) as wg:
        acc = registers(f32, mm.C)
        for m, n in tiles:
            sync("both", threads=256)  # the other one has read what the tile before left
            for k in loop(depth):
                slot = ring.wait()
                half = load(slot.a.tile((64, 16), (0, wg)), spread((64, 16), threads=128, vector=8)).to(f32)
                copy((half * 2).to(bf16), both[k % 2].tile((64, 16), (0, wg)))
                fence("async proxy")
                sync("both", threads=256)
                mma(mm, acc, both[k % 2], slot.b.tile((16, 32), (wg, 0)), init=eq(k, 0))
                wgmma.wait(0)
                ring.release()
            copy(acc.to(bf16), C.tile((64, 16), (m, 2 * n + wg)), edge=0)
    a, b = elements(A), elements(B)
    assert_equals(C, lambda m, n: total(lambda k: 2 * a(m, k) * b(n, k), over=K))
