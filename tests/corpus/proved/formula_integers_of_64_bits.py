# verdict: proved
"""Integers of 64 bits are added, subtracted and multiplied: modulo 2^64, one sum of products is another."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, elements, i64, kernel, load, sm_90a, spread, wrapped,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def combined(X: Tensor["M", i64], Z: Tensor["M", i64], Y: Tensor["M", i64]):
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    x, z = (load(each.tile((64,), (m,)), BY, edge=0) for each in (X, Z))
    copy((x + 1) * (x - z) - x * x, Y.tile((64,), (m,)), edge=0)
    x_at, z_at = elements(X), elements(Z)
    assert_equals(Y, lambda r: wrapped(x_at(r) - x_at(r) * z_at(r) - z_at(r), i64))
