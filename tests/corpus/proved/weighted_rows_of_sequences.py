# verdict: proved
"""Weighted sums of the rows of sequences, by elements: both factors end with the sequence, so that zeros follow."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, elements, eq, f32, gfx942, i32, kernel, load, loop, promise, registers,
    scalar, spread, total, vmem,
)

BY = spread((64, 1), threads=64, vector=1)


@kernel(target=gfx942, threads=64)
def weighted(X: Tensor["T 1", f32], W: Tensor["T 1", f32], starts: Tensor["S", i32], Y: Tensor["E 1", f32]):
    promise(starts, ascending=True, first=0, last=X.shape[0])
    assume(eq(starts.shape[0], Y.shape[0] + 1), X.shape[0] < 1 << 28)
    (e,) = block_id((Y.shape[0],))
    first, end = scalar(starts[e]), scalar(starts[e + 1])
    x, w = X.rows(first, end), W.rows(first, end)
    acc = registers(f32, BY)
    acc[:] = 0.0
    for k in loop(ceil_div(end - first, 64)):
        own, weights = load(x.tile((64, 1), (k, 0)), BY, edge=0), load(w.tile((64, 1), (k, 0)), BY, edge=0)
        vmem.wait(0)
        acc[:] = acc + own * weights
    copy(acc.sum(0), Y[e])

    def value(e, _):
        return total(lambda r: elements(X)(r, 0) * elements(W)(r, 0), over=(scalar(starts[e]), scalar(starts[e + 1])))

    assert_equals(Y, value)
