# verdict: proved
"""Attention of two waves: the next keys are stored into the other of two buffers while these are multiplied."""

from math import inf

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, copy, exp2, f32, gfx942, kernel, lds, load, loop,
    maximum, mfma, mfma_f32_16x16x16_bf16, mma, registers, shared, spread, sync, tag, thread, vmem,
)

SCALE = 0.25


@kernel(target=gfx942, threads=128)
def attention(
    Q: Tensor["H S 16", bf16], K: Tensor["G T 16", bf16], V: Tensor["G E T", bf16], O: Tensor["H S E", bf16]
):
    (H, S, _), (G, T, _), (_, E, _) = Q.shape, K.shape, V.shape
    assume(S % 32 == 0, T % 16 == 0, E % 16 == 0, T >= 16, G >= 1, H % G == 0)
    assume(H * S < 1 << 30, G * T < 1 << 30, G * E * T < 1 << 40, H * S * E < 1 << 40)
    tag(Q, lambda h, s, d: dict(h=h, g=h // (H // G), s=s, d=d))
    tag(K, lambda g, t, d: dict(g=g, t=t, d=d))
    tag(V, lambda g, e, t: dict(g=g, e=e, t=t))
    mm = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 2), tile=(16, 32))
    by = spread((16, 16), threads=128, vector=2)
    box = shared(bf16, (2, 16, 16))
    h, i, e = block_id((H, S // 32, E // 16))
    st, ot, p = registers(f32, mm.C), registers(f32, mm.C), registers(bf16, mm.B)
    high, total = registers(f32, mm.C.axis(1)), registers(f32, mm.C.partial(0))
    high[:], total[:], ot[:] = -inf, 0.0, 0.0
    q = load(Q[h].tile((32, 16), (i, 0)), mm.B)
    first = load(K[h // (H // G)].tile((16, 16), (0, 0)), by)
    vmem.wait(0)
    copy(first, box[0])
    lds.wait(0)
    sync()
    for n in loop(T // 16):
        following = load(K[h // (H // G)].tile((16, 16), (n + 1, 0)), by, edge=0)
        v = load(V[h // (H // G)].tile((16, 16), (e, n)), mm.A)
        vmem.wait(0)
        k = load(box[n % 2], mm.A)
        copy(following, box[(n + 1) % 2])
        lds.wait(0)
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
        sync()
    assert_covers(ot.tag.t, 0, T)
    z = total.sum(0)
    assert_covers(z.tag.t, 0, T)
    copy((ot / z).T.to(bf16), O[h].tile((32, 16), (i, e)))
    assert_written_once(O, lambda h, s, e: dict(h=h, g=h // (H // G), s=s, e=e))
