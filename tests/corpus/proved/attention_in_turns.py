# verdict: proved
"""Causal attention of heads in groups: two warpgroups in turns, keys from the last to the first, values a block behind."""

from math import inf, log as natural

from argus.language import (
    Ring, Tensor, Turns, assert_covers, assert_written_once, assume, bf16, ceil_div, copy, exp2, f32, kernel, log,
    longest_first, loop, maximum, minimum, mma, persistent, registers, role, shared, sm_90a, tag, thread, tma,
    warpgroup, warpgroups, wgmma, where,
)

SCALE = 0.25


@kernel(target=sm_90a, threads=384)
def attention(
    Q: Tensor["H S 16", bf16], K: Tensor["G T 16", bf16], V: Tensor["G T 16", bf16], O: Tensor["H S 16", bf16],
    LSE: Tensor["H S", f32],
):
    (H, S, _), (G, T, _) = Q.shape, K.shape
    assume(G >= 1, H % G == 0, S >= 1, T >= S, T < 1 << 20, H < 1 << 10)
    tag(Q, lambda h, q, d: dict(h=h, g=h // (H // G), q=q, d=d))
    tag(K, lambda g, t, d: dict(g=g, t=t, d=d))
    tag(V, lambda g, t, e: dict(g=g, t=t, e=e))
    offset = T - S
    qk, pv = wgmma(bf16, n=32), wgmma(bf16, n=16, a="registers", b_major="n")
    q_ring = Ring(1, q=shared(bf16, (128, 16), swizzle=32))
    k_ring = Ring(2, k=shared(bf16, (32, 16), swizzle=32))
    v_ring = Ring(2, v=shared(bf16, (32, 16), swizzle=32))
    turns = Turns(2)
    tiles = persistent((ceil_div(S, 128), H, 1), blocks=2, order=longest_first(sections=2))

    def blocks(i):
        return ceil_div(minimum(T, (i + 1) * 128 + offset), 32), minimum(i * 128 + offset + 1, T) // 32

    with role("load", warpgroup(0).elected, registers=24):
        for i, h, _ in tiles:
            count, _ = blocks(i)
            with q_ring.fill() as slot:
                copy(Q[h].tile((128, 16), (i, 0)), slot.q, via=tma, edge=0)
            for n in loop(count - 1, -1, step=-1):
                with k_ring.fill() as slot:
                    copy(K[h // (H // G)].tile((32, 16), (n, 0)), slot.k, via=tma, edge=0)
                with v_ring.fill() as slot:
                    copy(V[h // (H // G)].tile((32, 16), (n, 0)), slot.v, via=tma, edge=0)

    with role("math", warpgroups(1, 2), registers=240) as wg:
        s, o, p = registers(f32, qk.C), registers(f32, pv.C), registers(bf16, pv.A.tiled(k=32))
        high, total = registers(f32, qk.C.axis(0)), registers(f32, qk.C.partial(1))

        def softmax(row0, n, masked):
            x = s
            if masked:
                r, j = s.index
                x = where((n * 32 + j <= row0 + r + offset) & (n * 32 + j < T), s, -inf)
            now = maximum(high, x.max(1))
            guard = where(now == -inf, 0.0, now) if masked else now
            owed = exp2((high - guard) * SCALE)
            prob = exp2(x * SCALE - guard * SCALE)
            total[:] = total * owed + prob.sum(1, within=thread)
            high[:] = now
            return prob, owed

        for i, h, _ in tiles:
            row0 = i * 128 + 64 * wg
            count, clear = blocks(i)
            high[:], total[:], o[:] = -inf, 0.0, 0.0
            q = q_ring.wait().q.tile((64, 16), (wg, 0))
            mma(qk, s, q, k_ring.wait().k, init=True)
            wgmma.wait(0)
            k_ring.release()
            assert_covers(s.tag.d, 0, 16)
            prob, _ = softmax(row0, count - 1, masked=True)
            p[:] = prob.to(bf16)

            def step(n, q, row0, masked):
                with turns(wg):
                    mma(qk, s, q, k_ring.wait().k, init=True)
                    mma(pv, o, p, v_ring.wait().v)
                wgmma.wait(1)
                k_ring.release()
                prob, owed = softmax(row0, n, masked)
                wgmma.wait(0)
                v_ring.release()
                p[:] = prob.to(bf16)
                o[:] = o * owed

            for n in loop(count - 2, clear - 1, step=-1):
                step(n, q, row0, masked=True)
            for n in loop(minimum(clear, count - 1) - 1, -1, step=-1):
                step(n, q, row0, masked=False)
            mma(pv, o, p, v_ring.wait().v)
            wgmma.wait(0)
            v_ring.release()
            q_ring.release()
            row, z = row0 + o.index[0], total.sum(1)
            assert_covers(o.tag.t, 0, minimum(T, row + offset + 1), where=row < S)
            copy(log(z) + high * (SCALE * natural(2.0)), LSE[h].tile((64,), (2 * i + wg,)), edge=0)
            copy((o / where(z == 0, 1.0, z)).to(bf16), O[h].tile((64, 16), (2 * i + wg, 0)), edge=0)
    assert_written_once(O, lambda h, q, e: dict(h=h, q=q, e=e))
    assert_written_once(LSE, lambda h, q: dict(h=h, q=q))
