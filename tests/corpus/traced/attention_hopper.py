# verdict: proved
"""FlashAttention-3 forward on Hopper: causal, grouped-query, head dimension 128; softmax overlaps the products.

O[b, h, q] = sum over t of softmax(c Q K^T)[q, t] V[t], for t <= q + T - S; LSE is the log-sum-exp of the row. One role
loads Q, K and V through three rings, last key block first; two warpgroups of 64 queries each alternate on the tensor
cores, so that one computes exponentials while the other multiplies.
"""

from __future__ import annotations

from math import inf, sqrt
from math import log as natural

from attrs import frozen

from argus.language import (
    Fragment,
    Int,
    Ring,
    Tensor,
    Turns,
    assert_covers,
    assert_written_once,
    assume,
    bf16,
    bulk,
    ceil_div,
    copy,
    elected,
    eq,
    exp2,
    f32,
    fence,
    kernel,
    log,
    longest_first,
    loop,
    maximum,
    minimum,
    mma,
    persistent,
    registers,
    role,
    shared,
    sm_90a,
    stmatrix,
    sync,
    tag,
    thread,
    tma,
    warpgroup,
    warpgroups,
    wgmma,
    when,
    where,
)

LN_2 = natural(2.0)
LOG2_E = 1.0 / LN_2


@frozen
class Hopper:
    """bm queries and bn keys per step; l2: number of heads whose K and V share the L2 cache at a time."""

    bm: int = 128
    bn: int = 128
    l2: int = 8
    target = sm_90a
    threads = 384


def store_by_tma(acc: Fragment, target: Tensor, boxes: Tensor) -> None:
    """Stores 64 rows to global memory, 64 columns at a time, through this warpgroup's two alternating boxes."""
    for j in range(acc.shape[1] // 64):
        box, part = boxes[j % 2], target.tile((64, 64), (0, j))
        with elected():
            bulk.wait(pending=1, of="reads")
        sync()
        copy(acc.tile((64, 64), (0, j)).to(bf16), box, via=stmatrix.x4)
        fence("async proxy")
        sync()
        with elected():
            copy(box, part, via=tma, edge=0)
            bulk.commit()


@kernel(configs={"causal": Hopper()})
def attention(
    Q: Tensor["B H S 128", bf16],
    K: Tensor["B G T 128", bf16],
    V: Tensor["B G T 128", bf16],
    O: Tensor["B H S 128", bf16],  # noqa: E741 reason: the output's name in every paper
    LSE: Tensor["B H S", f32],
    *,
    cfg: Hopper,
) -> None:
    (batch, H, S, D), (_, G, T, _) = Q.shape, K.shape
    assume(G >= 1, H % G == 0, S >= 1, T >= S)
    bm, bn, offset, c = cfg.bm, cfg.bn, T - S, LOG2_E / sqrt(128)
    assume(T < 1 << 28, batch * H < 1 << 24, batch * H * ceil_div(S, bm) < 1 << 24)  # indices then fit 32 bits
    tag(Q, lambda b, h, q, d: dict(b=b, g=h // (H // G), h=h, q=q, d=d))  # only this line states the map from h to g
    tag(K, lambda b, g, t, d: dict(b=b, g=g, t=t, d=d))
    tag(V, lambda b, g, t, e: dict(b=b, g=g, t=t, e=e))  # a product must agree on every shared name
    qk, pv = wgmma(bf16, n=bn), wgmma(bf16, n=128, a="registers", b_major="n")
    q_ring = Ring(1, q=shared(bf16, (bm, D), swizzle=128))
    k_ring = Ring(2, k=shared(bf16, (bn, D), swizzle=128))
    v_ring = Ring(2, v=shared(bf16, (bn, D), swizzle=128))
    boxes = shared(bf16, (2, 2, 64, 64), swizzle=128)  # 32 + 64 + 64 + 32 KiB
    turns = Turns(2)
    tiles = persistent((ceil_div(S, bm), H, batch), order=longest_first(sections=cfg.l2))

    def blocks(i: Int) -> tuple[Int, Int]:
        """Number of key blocks visible to query tile i, and how many of them need no mask."""
        last = minimum(T, (i + 1) * bm + offset)
        return ceil_div(last, bn), minimum(i * bm + offset + 1, T) // bn

    with role("load", warpgroup(0).elected, registers=24):
        for i, h, b in tiles:
            q, k, v = Q[b, h], K[b, h // (H // G)], V[b, h // (H // G)]
            count, _ = blocks(i)
            with q_ring.fill() as slot:
                copy(q.tile((bm, D), (i, 0)), slot.q, via=tma, edge=0)
            for n in loop(count - 1, -1, step=-1):
                with k_ring.fill() as slot:
                    copy(k.tile((bn, D), (n, 0)), slot.k, via=tma, edge=0)
                with v_ring.fill() as slot:
                    copy(v.tile((bn, D), (n, 0)), slot.v, via=tma, edge=0)

    with role("math", warpgroups(1, 2), registers=240) as wg:
        s, o = registers(f32, qk.C), registers(f32, pv.C)
        p = registers(bf16, pv.A.tiled(k=bn))
        high = registers(f32, qk.C.axis(0))
        total = registers(f32, qk.C.partial(1))  # one partial sum per lane

        def softmax(row0: Int, n: Int, *, masked: bool) -> tuple[Fragment, Fragment]:
            """Turns a block of scores into probabilities, updates `high` and `total`; returns the rescaling of O."""
            x = s
            if masked:
                r, j = s.index
                x = where((n * bn + j <= row0 + r + offset) & (n * bn + j < T), s, -inf)
            now = maximum(high, x.max(1))
            guard = where(now == -inf, 0.0, now) if masked else now  # for the subtraction only; never stored
            owed = exp2((high - guard) * c)
            prob = exp2(x * c - guard * c)
            total[:] = total * owed + prob.sum(1, within=thread)
            high[:] = now
            return prob, owed

        for i, h, b in tiles:
            row0 = i * bm + 64 * wg
            count, clear = blocks(i)
            high[:], total[:], o[:] = -inf, 0.0, 0.0
            q = q_ring.wait().q.tile((64, D), (wg, 0))

            mma(qk, s, q, k_ring.wait().k, init=True)  # prologue: scores of the last block
            wgmma.wait(0)
            k_ring.release()
            assert_covers(s.tag.d, 0, D)  # each score is a whole product
            prob, _ = softmax(row0, count - 1, masked=True)
            p[:] = prob.to(bf16)  # C layout to A layout: register for register

            def step(n: Int, q: Tensor, row0: Int, *, masked: bool) -> None:
                """Overlaps the scores of block n with the P @ V product of block n + 1."""
                with turns(wg):
                    mma(qk, s, q, k_ring.wait().k, init=True)
                    mma(pv, o, p, v_ring.wait().v)
                wgmma.wait(1)  # the scores are ready; the other product still reads p
                k_ring.release()
                prob, owed = softmax(row0, n, masked=masked)
                wgmma.wait(0)
                v_ring.release()
                p[:] = prob.to(bf16)
                o[:] = o * owed  # after the product of block n + 1: O and the factor cover the same blocks

            for n in loop(count - 2, clear - 1, step=-1):
                step(n, q, row0, masked=True)
            for n in loop(minimum(clear, count - 1) - 1, -1, step=-1):
                step(n, q, row0, masked=False)

            mma(pv, o, p, v_ring.wait().v)  # of block 0
            wgmma.wait(0)
            v_ring.release()
            q_ring.release()
            row = row0 + o.index[0]
            assert_covers(o.tag.t, 0, minimum(T, row + offset + 1), where=row < S)  # causal rows, each key once
            z = total.sum(1)  # reduce over the quad once, at the end
            of = row0 + z.index[0]
            assert_covers(z.tag.t, 0, minimum(T, of + offset + 1), where=of < S)  # the row's sum has the same keys
            copy(log(z) + high * (c * LN_2), LSE[b, h].tile((64,), (2 * i + wg,)), edge=0)
            store_by_tma(o / where(z == 0, 1.0, z), O[b, h].tile((64, D), (2 * i + wg, 0)), boxes[wg])
        with elected():
            bulk.wait(0)
    assert_written_once(O, lambda b, h, q, e: dict(b=b, h=h, q=q, e=e))
    assert_written_once(LSE, lambda b, h, q: dict(b=b, h=h, q=q))
