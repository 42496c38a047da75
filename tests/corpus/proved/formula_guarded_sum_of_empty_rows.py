# verdict: proved
"""Sums of exponentials relative to the maximum of a row; of a row without elements the sum is 0."""

from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, exp2, f32, first_lane, kernel, load, loop, maximum,
    registers, sm_90a, spread, total, where,
)

BY = spread((32,), threads=32, vector=1)


def masked(X, r, n):
    x = load(X[r].tile((32,), (n,)), BY, edge=0)
    (column,) = x.index
    return where(32 * n + column < X.shape[1], x, -inf)


@kernel(target=sm_90a, threads=32)
def sums_of_exponentials(X: Tensor["R N", f32], Y: Tensor["R", f32]):
    R, N = X.shape
    assume(N < 1 << 20)
    (r,) = block_id((R,))
    top, sums = registers(f32, BY), registers(f32, BY)
    top[:], sums[:] = -inf, 0.0
    for n in loop(ceil_div(N, 32)):
        top[:] = maximum(top, masked(X, r, n))
    high = top.max(0)
    guard = where(high == -inf, 0.0, high)
    for n in loop(ceil_div(N, 32)):
        sums[:] = sums + exp2(masked(X, r, n) - guard)
    found = sums.sum(0)
    copy(where(found == 0, 0.0, exp2(guard) * found), Y[r], by=first_lane, edge=0)
    assert_equals(Y, lambda r: total(lambda n: exp2(X[r, n]), over=N))
