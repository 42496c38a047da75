# verdict: unknown
"""Elements of masked rows as e4m3 would be -inf, which it does not have: they are NaN, and the claim is -inf."""

from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, e4m3, f32, kernel, load, sm_90a, spread, where,
)


@kernel(target=sm_90a, threads=128)
def masked(X: Tensor["R N", f32], Y: Tensor["R N", e4m3]):
    R, N = X.shape
    assume(R >= 1, N >= 1, N % 64 == 0)
    i, j = block_id((ceil_div(R, 32), N // 64))
    x = load(X.tile((32, 64), (i, j)), spread((32, 64), threads=128, vector=16), edge=0)
    row, column = x.index
    seen = where(j * 64 + column <= i * 32 + row, x, -inf)
    copy(seen.to(e4m3), Y.tile((32, 64), (i, j)), edge=0)
    assert_equals(Y, lambda r, n: where(n <= r, X[r, n], -inf))
