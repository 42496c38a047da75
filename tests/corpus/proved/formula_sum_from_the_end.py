# verdict: proved
"""Sums of squares of rows, the last chunk first."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, first_lane, kernel, load, loop, registers, sm_90a,
    spread, thread, total,
)

CHUNK = 256


@kernel(target=sm_90a, threads=32)
def squares(X: Tensor["R N", f32], Y: Tensor["R", f32]):
    R, N = X.shape
    assume(N % 4 == 0, N >= 4)
    (row,) = block_id((R,))
    by = spread((CHUNK,), threads=32, vector=4)
    sums = registers(f32, by.partial(0))
    sums[:] = 0.0
    chunks = ceil_div(N, CHUNK)
    for i in loop(chunks):
        v = load(X[row].tile((CHUNK,), (chunks - 1 - i,)), by, edge=0)
        sums[:] = sums + (v * v).sum(0, within=thread)
    copy(sums.sum(0), Y[row], by=first_lane, edge=0)
    assert_equals(Y, lambda r: total(lambda j: X[r, j] * X[r, j], over=N))
