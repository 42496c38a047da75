# verdict: proved
"""Causal attention of one wave, output transposed through shared memory: each row keeps its own set of keys."""

from math import inf

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, exp2, f32, gfx942, kernel, lds, load,
    loop, maximum, mfma, mfma_f32_16x16x16_bf16, minimum, mma, registers, shared, sync, tag, thread, vmem, where,
)

SCALE = 0.25


@kernel(target=gfx942, threads=64)
def attention(Q: Tensor["S 16", bf16], K: Tensor["T 16", bf16], V: Tensor["E T", bf16], O: Tensor["S E", bf16]):
    (S, _), (T, _), (E, _) = Q.shape, K.shape, V.shape
    assume(S % 16 == 0, E % 16 == 0, T % 4 == 0, T >= S, S >= 1, T < 1 << 24)
    tag(Q, lambda s, d: dict(s=s, d=d))
    tag(K, lambda t, d: dict(t=t, d=d))
    tag(V, lambda e, t: dict(e=e, t=t))
    mm = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 1), tile=(16, 16))
    i, e = block_id((S // 16, E // 16))
    offset = T - S
    count = ceil_div(minimum(T, (i + 1) * 16 + offset), 16)
    clear = minimum(i * 16 + offset + 1, T) // 16
    st, ot, p = registers(f32, mm.C), registers(f32, mm.C), registers(bf16, mm.B)
    high, total = registers(f32, mm.C.axis(1)), registers(f32, mm.C.partial(0))
    high[:], total[:], ot[:] = -inf, 0.0, 0.0
    q = load(Q.tile((16, 16), (i, 0)), mm.B)
    vmem.wait(0)

    def step(n, masked):
        k = load(K.tile((16, 16), (n, 0)), mm.A, edge=0)
        v = load(V.tile((16, 16), (e, n)), mm.A, edge=0)
        vmem.wait(0)
        mma(mm, st, k, q, init=True)
        assert_covers(st.tag.d, 0, 16)
        seen = st
        if masked:
            j, r = st.index
            seen = where((16 * n + j <= 16 * i + r + offset) & (16 * n + j < T), st, -inf)
        now = maximum(high, seen.max(0))
        owed = exp2((high - now) * SCALE)
        prob = exp2(seen * SCALE - now * SCALE)
        total[:] = total * owed + prob.sum(0, within=thread)
        high[:] = now
        p[:] = prob.T.to(bf16)
        ot[:] = ot * owed
        mma(mm, ot, v, p)

    for n in loop(clear):
        step(n, masked=False)
    for n in loop(clear, count):
        step(n, masked=True)
    assert_covers(ot.tag.t, 0, minimum(T, 16 * i + ot.index[1] + offset + 1))
    z = total.sum(0)
    assert_covers(z.tag.t, 0, minimum(T, 16 * i + z.index[0] + offset + 1))
    box = shared(f32, (16, 16))
    copy(ot / z, box)
    lds.wait(0)
    sync()
    turned = load(box.T, mm.C)
    lds.wait(0)
    assert_covers(turned.tag.t, 0, minimum(T, 16 * i + turned.index[0] + offset + 1))
    copy(turned.to(bf16), O.tile((16, 16), (i, e)))
    assert_written_once(O, lambda s, e: dict(s=s, e=e))
