# verdict: refuted I24
"""A window whose values are those of the first blocks: scores of one key weigh the values of another."""

from math import inf

from argus.language import (
    Int, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, exp2, f32, gfx942, kernel, load,
    loop, maximum, mfma, mfma_f32_16x16x16_bf16, minimum, mma, registers, tag, thread, vmem, where,
)

SCALE = 0.25


@kernel(target=gfx942, threads=64)
def attention(
    Q: Tensor["S 16", bf16], K: Tensor["T 16", bf16], V: Tensor["E T", bf16], O: Tensor["S E", bf16], *, left: Int, right: Int
):
    (S, _), (T, _), (E, _) = Q.shape, K.shape, V.shape
    assume(E % 16 == 0, T % 4 == 0, T >= 1, S >= 1, T < 1 << 24, S < 1 << 24, left < 1 << 24, right < 1 << 24)
    tag(Q, lambda s, d: dict(s=s, d=d))
    tag(K, lambda t, d: dict(t=t, d=d))
    tag(V, lambda e, t: dict(e=e, t=t))
    mm = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 1), tile=(16, 16))
    i, e = block_id((ceil_div(S, 16), E // 16))
    offset = T - S

    def first(q):
        return maximum(0, q + offset - left)

    def end(q):
        return maximum(0, minimum(T, q + offset + right + 1))

    st, ot, p = registers(f32, mm.C), registers(f32, mm.C), registers(bf16, mm.B)
    high, total = registers(f32, mm.C.axis(1)), registers(f32, mm.C.partial(0))
    high[:], total[:], ot[:] = -inf, 0.0, 0.0
    q = load(Q.tile((16, 16), (i, 0)), mm.B, edge=0)
    vmem.wait(0)
    for n in loop(first(16 * i) // 16, ceil_div(end(16 * i + 15), 16)):
        k = load(K.tile((16, 16), (n, 0)), mm.A, edge=0)
        v = load(V.tile((16, 16), (e, n - first(16 * i) // 16)), mm.A, edge=0)
        vmem.wait(0)
        mma(mm, st, k, q, init=True)
        assert_covers(st.tag.d, 0, 16)
        j, r = st.index
        key, own = 16 * n + j, 16 * i + r + offset
        seen = where((key >= own - left) & (key <= own + right) & (key < T), st, -inf)
        now = maximum(high, seen.max(0))
        guard = where(now == -inf, 0.0, now)
        owed = exp2((high - guard) * SCALE)
        prob = exp2(seen * SCALE - guard * SCALE)
        total[:] = total * owed + prob.sum(0, within=thread)
        high[:] = now
        p[:] = prob.T.to(bf16)
        ot[:] = ot * owed
        mma(mm, ot, v, p)
    row = 16 * i + ot.index[1]
    assert_covers(ot.tag.t, first(row), end(row), where=row < S)
    z = total.sum(0)
    row = 16 * i + z.index[0]
    assert_covers(z.tag.t, first(row), end(row), where=row < S)
    copy((ot / where(z == 0, 1.0, z)).T.to(bf16), O.tile((16, 16), (i, e)), edge=0)
    assert_written_once(O, lambda s, e: dict(s=s, e=e))
