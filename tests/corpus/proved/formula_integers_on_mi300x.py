# verdict: proved
"""Integers of 64 bits are multiplied and narrowed to 32 bits on MI300X."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, elements, gfx942, i32, i64, kernel, load, spread, vmem, wrapped,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=gfx942, threads=64)
def narrowed(X: Tensor["M", i64], Z: Tensor["M", i64], Y: Tensor["M", i32]):
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    x, z = (load(each.tile((64,), (m,)), BY, edge=0) for each in (X, Z))
    vmem.wait(0)
    copy((x * z - 3).to(i32), Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: wrapped(elements(X)(r) * elements(Z)(r) - 3, i32))
