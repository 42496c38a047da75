# verdict: refuted I26
"""Grouped-query attention whose keys are those of head h % G: heads that are dealt to groups in turn."""

from math import inf

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, copy, exp2, f32, gfx942, kernel, load, loop, maximum,
    mfma, mfma_f32_16x16x16_bf16, mma, registers, tag, thread, vmem,
)

SCALE = 0.25


@kernel(target=gfx942, threads=64)
def attention(
    Q: Tensor["H S 16", bf16], K: Tensor["G T 16", bf16], V: Tensor["G E T", bf16], O: Tensor["H S E", bf16]
):
    (H, S, _), (G, T, _), (_, E, _) = Q.shape, K.shape, V.shape
    assume(S % 16 == 0, T % 16 == 0, E % 16 == 0, T >= 16, G >= 1, H % G == 0)
    assume(H * S < 1 << 30, G * T < 1 << 30, G * E * T < 1 << 40, H * S * E < 1 << 40)
    tag(Q, lambda h, s, d: dict(h=h, g=h // (H // G), s=s, d=d))
    tag(K, lambda g, t, d: dict(g=g, t=t, d=d))
    tag(V, lambda g, e, t: dict(g=g, e=e, t=t))
    mm = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 1), tile=(16, 16))
    h, i, e = block_id((H, S // 16, E // 16))
    st, ot, p = registers(f32, mm.C), registers(f32, mm.C), registers(bf16, mm.B)
    high, total = registers(f32, mm.C.axis(1)), registers(f32, mm.C.partial(0))
    high[:], total[:], ot[:] = -inf, 0.0, 0.0
    q = load(Q[h].tile((16, 16), (i, 0)), mm.B)
    vmem.wait(0)
    for n in loop(T // 16):
        k = load(K[h % G].tile((16, 16), (n, 0)), mm.A)
        v = load(V[h // (H // G)].tile((16, 16), (e, n)), mm.A)
        vmem.wait(0)
        mma(mm, st, k, q, init=True)
        assert_covers(st.tag.d, 0, 16)
        now = maximum(high, st.max(0))
        owed = exp2((high - now) * SCALE)
        prob = exp2(st * SCALE - now * SCALE)
        total[:] = total * owed + prob.sum(0, within=thread)
        high[:] = now
        p[:] = prob.T.to(bf16)
        ot[:] = ot * owed
        mma(mm, ot, v, p)
    assert_covers(ot.tag.t, 0, T)
    z = total.sum(0)
    assert_covers(z.tag.t, 0, T)
    copy((ot / z).T.to(bf16), O[h].tile((16, 16), (i, e)))
    assert_written_once(O, lambda h, s, e: dict(h=h, g=h // (H // G), s=s, e=e))
