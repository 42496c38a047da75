from math import inf

from argus.language import (
    Ring, Tensor, Turns, assert_covers, assert_written_once, assume, bf16, ceil_div, copy, exp2, f32, kernel, loop,
    maximum, mma, persistent, registers, role, shared, sm_90a, tag, thread, tma, warpgroup, warpgroups, wgmma,
)

SCALE = 0.18033688011112042
KEYS, WIDTH, GROUPS, STAGES = 128, 64, 2, 2
ROWS = 64 * GROUPS


@kernel(target=sm_90a, threads=128 * (1 + GROUPS))
def attention(Q: Tensor["S 64", bf16], K: Tensor["T 64", bf16], V: Tensor["T 64", bf16], O: Tensor["S 64", bf16]):
    (S, _), (T, _) = Q.shape, K.shape
    assume(S >= 1, T >= 128, T % 128 == 0, S <= 1 << 20, T <= 1 << 20)
    tag(Q, lambda q, d: dict(q=q, d=d))
    tag(K, lambda t, d: dict(t=t, d=d))
    tag(V, lambda t, e: dict(t=t, e=e))
    qk, pv = wgmma(bf16, n=KEYS), wgmma(bf16, n=WIDTH, a="registers", b_major="n")
    q_ring = Ring(1, q=shared(bf16, (ROWS, WIDTH), swizzle=128))
    k_ring = Ring(STAGES, k=shared(bf16, (KEYS, WIDTH), swizzle=128))
    v_ring = Ring(STAGES, v=shared(bf16, (KEYS, WIDTH), swizzle=128))
    turns = Turns(GROUPS)
    tiles = persistent((ceil_div(S, ROWS),))

    with role("load", warpgroup(0).elected, registers=24):
        for (i,) in tiles:
            with q_ring.fill() as slot:
                copy(Q.tile((ROWS, WIDTH), (i, 0)), slot.q, via=tma, edge=0)
            for n in loop(T // KEYS):
                with k_ring.fill() as slot:
                    copy(K.tile((KEYS, WIDTH), (n, 0)), slot.k, via=tma, edge=0)
                with v_ring.fill() as slot:
                    copy(V.tile((KEYS, WIDTH), (n, 0)), slot.v, via=tma, edge=0)

    with role("math", warpgroups(*range(1, 1 + GROUPS)), registers=240) as wg:
        s, o, p = registers(f32, qk.C), registers(f32, pv.C), registers(bf16, pv.A.tiled(k=KEYS))
        high, total = registers(f32, qk.C.axis(0)), registers(f32, qk.C.partial(1))
        for (i,) in tiles:
            high[:], total[:], o[:] = -inf, 0.0, 0.0
            q = q_ring.wait().q.tile((64, WIDTH), (wg, 0))
            mma(qk, s, q, k_ring.wait().k, init=True)
            wgmma.wait(0)
            k_ring.release()
            assert_covers(s.tag.d, 0, WIDTH)
            high[:] = s.max(1)
            weights = exp2(s * SCALE - high * SCALE)
            total[:] = weights.sum(1, within=thread)
            p[:] = weights.to(bf16)
            for n in loop(1, T // KEYS):
                with turns(wg):
                    mma(qk, s, q, k_ring.wait().k, init=True)
                    mma(pv, o, p, v_ring.wait().v)
                wgmma.wait(1)
                k_ring.release()
                now = maximum(high, s.max(1))
                owed = exp2((high - now) * SCALE)
                weights = exp2(s * SCALE - now * SCALE)
                total[:] = total * owed + weights.sum(1, within=thread)
                high[:] = now
                wgmma.wait(0)
                v_ring.release()
                p[:] = weights.to(bf16)
                o[:] = o * owed
            q_ring.release()
            mma(pv, o, p, v_ring.wait().v)
            wgmma.wait(0)
            v_ring.release()
            assert_covers(o.tag.t, 0, T)
            z = total.sum(1)
            assert_covers(z.tag.t, 0, T)
            copy((o / z).to(bf16), O.tile((64, WIDTH), (GROUPS * i + wg, 0)), edge=0)
    assert_written_once(O, lambda q, e: dict(q=q, e=e))
