# verdict: refuted I24
"""Keys are loaded last block first, values first block first: P multiplies the values of another block."""

from math import inf

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, exp2, f32, kernel, loop,
    maximum, mma, registers, role, shared, sm_90a, tag, thread, tma, warpgroup, wgmma,
)

SCALE = 0.25


@kernel(target=sm_90a, threads=256)
def attention(Q: Tensor["S 16", bf16], K: Tensor["T 16", bf16], V: Tensor["T 16", bf16], O: Tensor["S 16", bf16]):
    (S, _), (T, _) = Q.shape, K.shape
    assume(S >= 1, T >= 32, T % 32 == 0)
    tag(Q, lambda q, d: dict(q=q, d=d))
    tag(K, lambda t, d: dict(t=t, d=d))
    tag(V, lambda t, e: dict(t=t, e=e))
    qk, pv = wgmma(bf16, n=32), wgmma(bf16, n=16, a="registers", b_major="n")
    q_ring = Ring(1, q=shared(bf16, (64, 16), swizzle=32))
    k_ring = Ring(2, k=shared(bf16, (32, 16), swizzle=32))
    v_ring = Ring(2, v=shared(bf16, (32, 16), swizzle=32))
    (i,) = block_id((ceil_div(S, 64),))

    with role("load", warpgroup(0).elected, registers=40):
        with q_ring.fill() as slot:
            copy(Q.tile((64, 16), (i, 0)), slot.q, via=tma, edge=0)
        for n in loop(T // 32):
            with k_ring.fill() as slot:
                copy(K.tile((32, 16), (n, 0)), slot.k, via=tma, edge=0)
            with v_ring.fill() as slot:
                copy(V.tile((32, 16), (T // 32 - 1 - n, 0)), slot.v, via=tma, edge=0)

    with role("math", warpgroup(1), registers=232):
        s, o, p = registers(f32, qk.C), registers(f32, pv.C), registers(bf16, pv.A.tiled(k=32))
        high, total = registers(f32, qk.C.axis(0)), registers(f32, qk.C.partial(1))
        high[:], total[:], o[:] = -inf, 0.0, 0.0
        q = q_ring.wait().q
        for n in loop(T // 32):
            mma(qk, s, q, k_ring.wait().k, init=True)
            wgmma.wait(0)
            k_ring.release()
            assert_covers(s.tag.d, 0, 16)
            now = maximum(high, s.max(1))
            owed = exp2((high - now) * SCALE)
            prob = exp2(s * SCALE - now * SCALE)
            total[:] = total * owed + prob.sum(1, within=thread)
            high[:] = now
            p[:] = prob.to(bf16)
            o[:] = o * owed
            mma(pv, o, p, v_ring.wait().v)
            wgmma.wait(0)
            v_ring.release()
        q_ring.release()
        assert_covers(o.tag.t, 0, T)
        z = total.sum(1)
        assert_covers(z.tag.t, 0, T)
        copy((o / z).to(bf16), O.tile((64, 16), (i, 0)), edge=0)
    assert_written_once(O, lambda q, e: dict(q=q, e=e))
