# verdict: unknown
"""A counter of 64 bits is one more after each step, unless it is the greatest integer that it holds."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, elements, i64, kernel, load, sm_90a, spread,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def counted(X: Tensor["M", i64], Y: Tensor["M", i64]):
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    copy(load(X.tile((64,), (m,)), BY, edge=0) + 1, Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: elements(X)(r) + 1)
