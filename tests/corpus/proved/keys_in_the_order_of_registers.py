# verdict: proved
"""Products of scores with values, all in e4m3: scores go from one fragment to the other in a thread's registers.

A thread holds the same 4 of 16 keys in both fragments, in another order, in which memory has the keys of the values.
"""

from argus.language import (
    Int, Ring, Tensor, assert_covers, assert_written_once, assume, block_id, ceil_div, copy, e4m3, f32, kernel, loop,
    mma, registers, role, shared, sm_90a, tag, tma, warpgroup, wgmma,
)


def key(place: Int) -> Int:
    return place // 16 * 16 + place % 16 // 2 % 2 * 8 + place % 16 // 4 * 2 + place % 2


@kernel(target=sm_90a, threads=256)
def scores_of_values(
    Q: Tensor["S 32", e4m3], K: Tensor["T 32", e4m3], V: Tensor["16 T", e4m3], O: Tensor["S 16", f32]
):
    S, T = Q.shape[0], K.shape[0]
    assume(T >= 1, T % 32 == 0, T < 1 << 28)
    tag(Q, lambda s, d: dict(s=s, d=d))
    tag(K, lambda t, d: dict(t=t, d=d))
    tag(V, lambda e, p: dict(t=key(p), e=e))
    qk, pv = wgmma(e4m3, n=32), wgmma(e4m3, n=16, a="registers")
    once = Ring(1, q=shared(e4m3, (64, 32), swizzle=32))
    ring = Ring(2, k=shared(e4m3, (32, 32), swizzle=32), v=shared(e4m3, (16, 32), swizzle=32))
    (i,) = block_id((ceil_div(S, 64),))
    with role("load", warpgroup(0).elected, registers=40):
        with once.fill() as slot:
            copy(Q.tile((64, 32), (i, 0)), slot.q, via=tma, edge=0)
        for n in loop(T // 32):
            with ring.fill() as slot:
                copy(K.tile((32, 32), (n, 0)), slot.k, via=tma)
                copy(V.tile((16, 32), (0, n)), slot.v, via=tma)
    with role("math", warpgroup(1), registers=232):
        scores, factor, out = registers(f32, qk.C), registers(e4m3, pv.A), registers(f32, pv.C)
        out[:] = 0.0
        q = once.wait().q
        for n in loop(T // 32):
            slot = ring.wait()
            mma(qk, scores, q, slot.k, init=True)
            wgmma.wait(0)
            assert_covers(scores.tag.d, 0, 32)
            factor[:] = scores.to(e4m3).gather(pv.A, lambda row, place: (row, key(place)))
            mma(pv, out, factor, slot.v)
            wgmma.wait(0)
            ring.release()
        once.release()
        assert_covers(out.tag.t, 0, T)
        copy(out, O.tile((64, 16), (i, 0)), edge=0)
    assert_written_once(O, lambda s, e: dict(s=s, e=e))
