# verdict: refuted I11
"""The relation on a block's sum is asserted before the wait for its product."""

from argus.language import (
    Ring, Tensor, assert_relation, assert_covers, assert_written_once, assume, bf16, block_id, ceil_div, copy, e4m3, eq,
    f32, fma, kernel, loop, mma, registers, role, shared, sm_90a, tag, tma, warpgroup, wgmma,
)


@kernel(target=sm_90a, threads=256)
def promoted(
    A: Tensor["M K", e4m3], B: Tensor["N K", e4m3], SA: Tensor["KB M", f32], SB: Tensor["NB KB", f32],
    C: Tensor["M N", bf16],
):
    (M, K), (N, _), (KB, _), (NB, _) = A.shape, B.shape, SA.shape, SB.shape
    assume(K >= 1, K % 16 == 0, N % 2 == 0, eq(KB, ceil_div(K, 32)), eq(NB, ceil_div(N, 16)))
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    tag(SA, lambda kb, m: dict(kb=kb, m=m))
    tag(SB, lambda nb, kb: dict(kb=kb, nb=nb))
    mm = wgmma(e4m3, n=16)
    ring = Ring(2, a=shared(e4m3, (128, 32), swizzle=32), b=shared(e4m3, (16, 32), swizzle=32))
    m, n = block_id((ceil_div(M, 128), ceil_div(N, 16)))
    depth = ceil_div(K, 32)

    with role("load", warpgroup(0).elected, registers=40):
        for k in loop(depth):
            with ring.fill() as slot:
                copy(A.tile((128, 32), (m, k)), slot.a, via=tma, edge=0)
                copy(B.tile((16, 32), (n, k)), slot.b, via=tma, edge=0)
        ring.finish()

    with role("math", warpgroup(1), registers=232):
        part, accs = registers(f32, mm.C), [registers(f32, mm.C) for _ in range(2)]
        rows, columns = [registers(f32, mm.C.axis(0)) for _ in range(2)], registers(f32, mm.C.axis())

        def fetch(k):
            copy(SB[n, k], columns, edge=0)
            for i in range(2):
                copy(SA[k].tile((64,), (2 * m + i,)), rows[i], edge=0)

        for acc in accs:
            acc[:] = 0.0
        fetch(0)
        for k in loop(depth):
            scales = [held * columns for held in rows]
            slot = ring.wait()
            for i in range(2):
                mma(mm, part, slot.a.tile((64, 32), (i, 0)), slot.b, init=True)
                if i == 0:
                    fetch(k + 1)
                assert_relation(part, scales[i], lambda p, s: eq(s.kb, p.k // 32) & eq(s.nb, p.n // 16))
                wgmma.wait(0)
                if i == 1:
                    ring.release()
                accs[i][:] = fma(part, scales[i], accs[i])
        for i, acc in enumerate(accs):
            assert_covers(acc.tag.k, 0, K)
            copy(acc.to(bf16), C.tile((64, 16), (2 * m + i, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))
