# verdict: proved
"""O is rescaled by each wave in which a maximum has moved: the same product, which others skip as one by 1."""

from math import inf

from argus.language import (
    Tensor, assert_covers, assert_equals, assert_written_once, assume, bf16, block_id, ceil_div, copy, exp2, f32,
    gfx942, greatest, kernel, load, loop, maximum, mfma, mfma_f32_16x16x16_bf16, mma, registers, rescale, tag, thread,
    total, vmem, when, where,
)

SCALE = 0.25


@kernel(target=gfx942, threads=64)
def attention(Q: Tensor["S 16", bf16], K: Tensor["T 16", bf16], V: Tensor["E T", bf16], O: Tensor["S E", bf16]):
    (S, _), (T, _), (E, _) = Q.shape, K.shape, V.shape
    assume(S % 16 == 0, E % 16 == 0, T % 4 == 0, T >= 1)
    tag(Q, lambda s, d: dict(s=s, d=d))
    tag(K, lambda t, d: dict(t=t, d=d))
    tag(V, lambda e, t: dict(e=e, t=t))
    mm = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 1), tile=(16, 16))
    i, e = block_id((S // 16, E // 16))
    count = ceil_div(T, 16)
    st, ot, p = registers(f32, mm.C), registers(f32, mm.C), registers(bf16, mm.B)
    high, sums = registers(f32, mm.C.axis(1)), registers(f32, mm.C.partial(0))
    high[:], sums[:], ot[:] = -inf, 0.0, 0.0
    q = load(Q.tile((16, 16), (i, 0)), mm.B)
    vmem.wait(0)
    for n in loop(count):
        k = load(K.tile((16, 16), (n, 0)), mm.A, edge=0)
        vmem.wait(0)
        mma(mm, st, k, q, init=True)
        assert_covers(st.tag.d, 0, 16)
        j, _ = st.index
        seen = where(16 * n + j < T, st, -inf)
        now = maximum(high, seen.max(0))
        owed = exp2((high - now) * SCALE)
        prob = exp2(seen * SCALE - now * SCALE)
        sums[:] = sums * owed + prob.sum(0, within=thread)
        high[:] = now
        with when(n > 0):
            v = load(V.tile((16, 16), (e, n - 1)), mm.A, edge=0)
            vmem.wait(0)
            mma(mm, ot, v, p)
        rescale(ot, owed)
        p[:] = prob.T.to(bf16)
    last = load(V.tile((16, 16), (e, count - 1)), mm.A, edge=0)
    vmem.wait(0)
    mma(mm, ot, last, p)
    assert_covers(ot.tag.t, 0, T)
    z = sums.sum(0)
    assert_covers(z.tag.t, 0, T)
    copy((ot / z).T.to(bf16), O.tile((16, 16), (i, e)))
    assert_written_once(O, lambda s, e: dict(s=s, e=e))

    def score(s, t):
        """The scaled product of a query and a key."""
        return total(lambda d: Q[s, d] * K[t, d], over=16) * SCALE

    def weight(s, t):
        """A weight of the softmax, before the division."""
        return exp2(score(s, t) - greatest(lambda u: score(s, u), over=T))

    assert_equals(
        O,
        lambda s, e: total(lambda t: weight(s, t) * V[e, t], over=T) / total(lambda t: weight(s, t), over=T),
    )
