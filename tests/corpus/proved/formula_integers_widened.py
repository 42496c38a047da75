# verdict: proved
"""A sum of integers of 32 bits wraps around there, and its double in 64 bits does not."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, elements, i32, i64, kernel, load, sm_90a, spread, wrapped,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def doubled(X: Tensor["M", i32], Y: Tensor["M", i64]):
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    x = load(X.tile((64,), (m,)), BY, edge=0)
    copy((x + 1).to(i64) * 2, Y.tile((64,), (m,)), edge=0)
    x_at = elements(X)
    assert_equals(Y, lambda r: wrapped(wrapped(x_at(r) + 1, i32) * 2, i64))
