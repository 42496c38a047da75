# verdict: proved
"""One-wave attention: P @ V runs one key block behind; an earlier launch stores V transposed and zero-padded."""

from math import inf

from argus.language import (
    TV, Layout, Tensor, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, eq, exp2, f32,
    gfx942, kernel, load, loop, maximum, mfma, mfma_f32_16x16x16_bf16, mma, program, registers, tag, thread, vmem, when,
    where, workspace,
)

SCALE = 0.25


@kernel(target=gfx942, threads=64)
def turn(V: Tensor["T 16", bf16], Vt: Tensor["16 P", bf16]):
    T, P = V.shape[0], Vt.shape[1]
    assume(eq(P, ceil_div(T, 16) * 16))
    tag(V, lambda t, e: dict(t=t, e=e))
    by = TV(Layout((16, 4), (1, 16)), Layout(4, 64), (16, 16))
    (n,) = block_id((ceil_div(T, 16),))
    turned = load(V.tile((16, 16), (n, 0)).T, by, edge=0)
    vmem.wait(0)
    copy(turned, Vt.tile((16, 16), (0, n)), edge=0)
    assert_written_once(Vt.gather((16, T), lambda e, t: (e, t)), lambda e, t: dict(t=t, e=e))


@kernel(target=gfx942, threads=64)
def attend(Q: Tensor["S 16", bf16], K: Tensor["T 16", bf16], Vt: Tensor["16 P", bf16], O: Tensor["S 16", bf16]):
    S, T, P = Q.shape[0], K.shape[0], Vt.shape[1]
    assume(S % 16 == 0, T >= 1, eq(P, ceil_div(T, 16) * 16))
    tag(Q, lambda s, d: dict(s=s, d=d))
    tag(K, lambda t, d: dict(t=t, d=d))
    mm = mfma(mfma_f32_16x16x16_bf16).over(waves=(1, 1), tile=(16, 16))
    (i,) = block_id((S // 16,))
    count = ceil_div(T, 16)
    st, ot, p = registers(f32, mm.C), registers(f32, mm.C), registers(bf16, mm.B)
    high, total = registers(f32, mm.C.axis(1)), registers(f32, mm.C.partial(0))
    high[:], total[:], ot[:] = -inf, 0.0, 0.0
    q = load(Q.tile((16, 16), (i, 0)), mm.B)
    vmem.wait(0)
    for n in loop(count):
        with when(n > 0):
            v = load(Vt.tile((16, 16), (0, n - 1)), mm.A)
            vmem.wait(0)
            mma(mm, ot, v, p)
        k = load(K.tile((16, 16), (n, 0)), mm.A, edge=0)
        vmem.wait(0)
        mma(mm, st, k, q, init=True)
        assert_covers(st.tag.d, 0, 16)
        j, _ = st.index
        seen = where(16 * n + j < T, st, -inf)
        now = maximum(high, seen.max(0))
        owed = exp2((high - now) * SCALE)
        prob = exp2(seen * SCALE - now * SCALE)
        total[:] = total * owed + prob.sum(0, within=thread)
        high[:] = now
        p[:] = prob.T.to(bf16)
        ot[:] = ot * owed
    last = load(Vt.tile((16, 16), (0, count - 1)), mm.A)
    vmem.wait(0)
    mma(mm, ot, last, p)
    assert_covers(ot.tag.t, 0, T)
    z = total.sum(0)
    assert_covers(z.tag.t, 0, T)
    copy((ot / z).T.to(bf16), O.tile((16, 16), (i, 0)))
    assert_written_once(O, lambda s, e: dict(s=s, e=e))


@program
def attention(Q: Tensor["S 16", bf16], K: Tensor["T 16", bf16], V: Tensor["T 16", bf16], O: Tensor["S 16", bf16]):
    Vt = workspace(bf16, (16, ceil_div(K.shape[0], 16) * 16))
    turn(V, Vt)
    attend(Q, K, Vt, O)
