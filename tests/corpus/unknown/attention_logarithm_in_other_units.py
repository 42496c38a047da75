# verdict: unknown
"""LSE adds the maximum in another log base than the log of the sum; tags have no units, so no run can refute it."""

from math import inf, log as natural

from argus.language import (
    Ring, Tensor, assert_covers, assert_written_once, assume, bf16, ceil_div, copy, exp2, f32, kernel, log,
    loop, maximum, minimum, mma, persistent, registers, role, shared, sm_90a, tag, thread, tma,
    warpgroup, wgmma, where,
)

SCALE = 0.25


@kernel(target=sm_90a, threads=256)
def attention(
    Q: Tensor["S 16", bf16], K: Tensor["T 16", bf16], V: Tensor["T 16", bf16], O: Tensor["S 16", bf16],
    LSE: Tensor["S", f32],
):
    (S, _), (T, _) = Q.shape, K.shape
    assume(S >= 1, T >= S, T < 1 << 20)
    tag(Q, lambda q, d: dict(q=q, d=d))
    tag(K, lambda t, d: dict(t=t, d=d))
    tag(V, lambda t, e: dict(t=t, e=e))
    offset = T - S
    qk, pv = wgmma(bf16, n=32), wgmma(bf16, n=16, a="registers", b_major="n")
    q_ring = Ring(1, q=shared(bf16, (64, 16), swizzle=32))
    k_ring = Ring(2, k=shared(bf16, (32, 16), swizzle=32))
    v_ring = Ring(2, v=shared(bf16, (32, 16), swizzle=32))
    tiles = persistent((ceil_div(S, 64), 1), blocks=2)

    def blocks(i):
        return ceil_div(minimum(T, (i + 1) * 64 + offset), 32), minimum(i * 64 + offset + 1, T) // 32

    with role("load", warpgroup(0).elected, registers=40):
        for i, _ in tiles:
            count, _ = blocks(i)
            with q_ring.fill() as slot:
                copy(Q.tile((64, 16), (i, 0)), slot.q, via=tma, edge=0)
            for n in loop(count - 1, -1, step=-1):
                with k_ring.fill() as slot:
                    copy(K.tile((32, 16), (n, 0)), slot.k, via=tma, edge=0)
                with v_ring.fill() as slot:
                    copy(V.tile((32, 16), (n, 0)), slot.v, via=tma, edge=0)

    with role("math", warpgroup(1), registers=232):
        s, o, p = registers(f32, qk.C), registers(f32, pv.C), registers(bf16, pv.A.tiled(k=32))
        high, total = registers(f32, qk.C.axis(0)), registers(f32, qk.C.partial(1))

        def softmax(i, n, masked):
            x = s
            if masked:
                r, j = s.index
                x = where((n * 32 + j <= 64 * i + r + offset) & (n * 32 + j < T), s, -inf)
            now = maximum(high, x.max(1))
            guard = where(now == -inf, 0.0, now) if masked else now
            owed = exp2((high - guard) * SCALE)
            prob = exp2(x * SCALE - guard * SCALE)
            total[:] = total * owed + prob.sum(1, within=thread)
            high[:] = now
            return prob, owed

        for i, _ in tiles:
            count, clear = blocks(i)
            high[:], total[:], o[:] = -inf, 0.0, 0.0
            q = q_ring.wait().q
            mma(qk, s, q, k_ring.wait().k, init=True)
            wgmma.wait(0)
            k_ring.release()
            assert_covers(s.tag.d, 0, 16)
            prob, _ = softmax(i, count - 1, masked=True)
            p[:] = prob.to(bf16)

            def step(i, q, n, masked):
                mma(qk, s, q, k_ring.wait().k, init=True)
                mma(pv, o, p, v_ring.wait().v)
                wgmma.wait(1)
                k_ring.release()
                prob, owed = softmax(i, n, masked)
                wgmma.wait(0)
                v_ring.release()
                p[:] = prob.to(bf16)
                o[:] = o * owed

            for n in loop(count - 2, clear - 1, step=-1):
                step(i, q, n, masked=True)
            for n in loop(minimum(clear, count - 1) - 1, -1, step=-1):
                step(i, q, n, masked=False)
            mma(pv, o, p, v_ring.wait().v)
            wgmma.wait(0)
            v_ring.release()
            q_ring.release()
            row, z = 64 * i + o.index[0], total.sum(1)
            assert_covers(o.tag.t, 0, minimum(T, row + offset + 1), where=row < S)
            copy(log(z) + high * (SCALE), LSE.tile((64,), (i,)), edge=0)
            copy((o / where(z == 0, 1.0, z)).to(bf16), O.tile((64, 16), (i, 0)), edge=0)
    assert_written_once(O, lambda q, e: dict(q=q, e=e))
    assert_written_once(LSE, lambda q: dict(q=q))
