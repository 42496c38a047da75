# verdict: refuted I39
"""Twice the sums of rows are added to what an output held before."""

from argus.language import (
    Tensor, add, assert_equals, assume, before, block_id, ceil_div, copy, f32, first_lane, kernel, load, loop,
    registers, sm_90a, spread, thread, total,
)

CHUNK = 128


@kernel(target=sm_90a, threads=32)
def added(X: Tensor["R N", f32], Y: Tensor["R", f32]):
    R, N = X.shape
    assume(N % 4 == 0)
    (r,) = block_id((R,))
    by = spread((CHUNK,), threads=32, vector=4)
    sums = registers(f32, by.partial(0))
    sums[:] = 0.0
    for i in loop(ceil_div(N, CHUNK)):
        sums[:] = sums + load(X[r].tile((CHUNK,), (i,)), by, edge=0).sum(0, within=thread)
    copy(sums.sum(0) * 2, Y[r], by=first_lane, edge=0, combine=add)
    assert_equals(Y, lambda r: before(Y)[r] + total(lambda j: X[r, j], over=N))
