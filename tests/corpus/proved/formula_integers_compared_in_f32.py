# verdict: proved
"""Integers are compared as numbers of f32, which has all of them: of one side, a contract on the data says so."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, elements, f32, i32, kernel, load, promise, sm_90a, spread, where,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def alike(X: Tensor["M", i32], Z: Tensor["M", i32], Y: Tensor["M", f32]):
    promise(Z, lambda z: (z >= 0) & (z < 1 << 24))
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    x, z = (load(each.tile((64,), (m,)), BY, edge=0).to(f32) for each in (X, Z))
    copy(where(x == z, 1.0, 0.0), Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: where(elements(X)(r) == elements(Z)(r), 1, 0))
