# verdict: unknown
"""Beyond the last row of a sequence one factor reads zeros, the other rows of the sequence after: 0 times NaN is NaN."""

from argus.language import (
    Ring, Tensor, assert_equals, assume, bf16, block_id, ceil_div, copy, elements, eq, f32, i32, kernel, loop, mma,
    promise, registers, role, scalar, shared, sm_90a, tma, total, warpgroup, wgmma,
)


@kernel(target=sm_90a, threads=256)
def products(X: Tensor["T 64", bf16], G: Tensor["T 64", bf16], starts: Tensor["S", i32], D: Tensor["E 64 64", f32]):
    promise(starts, ascending=True, first=0, last=X.shape[0])
    assume(eq(starts.shape[0], D.shape[0] + 1), X.shape[0] >= 1, X.shape[0] < 1 << 28)
    mm = wgmma(bf16, n=64)
    ring = Ring(2, x=shared(bf16, (64, 64), swizzle=128).T, g=shared(bf16, (64, 64), swizzle=128).T)
    (e,) = block_id((D.shape[0],))
    first, end = scalar(starts[e]), scalar(starts[e + 1])

    with role("load", warpgroup(0).elected, registers=40):
        x, g = X.rows(first, end).mT, G.rows(first).mT
        for k in loop(ceil_div(end - first, 64)):
            with ring.fill() as slot:
                copy(x.tile((64, 64), (0, k)), slot.x, via=tma, edge=0)
                copy(g.tile((64, 64), (0, k)), slot.g, via=tma, edge=0)

    with role("math", warpgroup(1), registers=232):
        acc = registers(f32, mm.C)
        acc[:] = 0.0
        for _ in loop(ceil_div(end - first, 64)):
            slot = ring.wait()
            mma(mm, acc, slot.x, slot.g)
            wgmma.wait(0)
            ring.release()
        copy(acc, D[e].tile((64, 64), (0, 0)))

    def value(e, i, j):
        return total(lambda r: elements(X)(r, i) * elements(G)(r, j), over=(scalar(starts[e]), scalar(starts[e + 1])))

    assert_equals(D, value)
