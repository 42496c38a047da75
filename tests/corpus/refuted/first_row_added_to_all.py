# verdict: refuted I39
"""Each block adds the first row of a matrix to all rows of what an output held before."""

from argus.language import (
    Tensor, add, assert_equals, assume, before, block_id, ceil_div, copy, f32, kernel, load, loop, sm_90a, spread, total,
)

COLUMNS = 256


@kernel(target=sm_90a, threads=64)
def added(X: Tensor["P R N", f32], Y: Tensor["R N", f32]):
    P, R, N = X.shape
    assume(P >= 1, R >= 1, N >= 1, N % 4 == 0, R * ceil_div(N, COLUMNS) < 1 << 20)
    (p,) = block_id((P,))
    count = ceil_div(N, COLUMNS)
    for i in loop(R * count):
        part = load(X[p, 0 * i].tile((COLUMNS,), (i % count,)), spread((COLUMNS,), threads=64, vector=4), edge=0)
        copy(part, Y[i // count].tile((COLUMNS,), (i % count,)), edge=0, combine=add)
    assert_equals(Y, lambda r, n: before(Y)[r, n] + total(lambda p: X[p, r, n], over=P))
