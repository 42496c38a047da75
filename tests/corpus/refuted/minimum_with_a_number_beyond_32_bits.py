# verdict: refuted I28
"""A row's number as a minimum with 2^33: in 32 bits that is 0, and all rows are the first."""

from argus.language import Tensor, assert_equals, assume, block_id, copy, f32, kernel, load, minimum, sm_90a, spread

BY = spread((32,), threads=32, vector=1)


@kernel(target=sm_90a, threads=32)
def rows(X: Tensor["R 32", f32], Y: Tensor["R 32", f32]):
    (R, _) = X.shape
    assume(R <= 1000)
    (r,) = block_id((R,))
    row = minimum(r, minimum(r * r * R, 1 << 33))
    copy(load(X[row].tile((32,), (0,)), BY), Y[r].tile((32,), (0,)))
    assert_equals(Y, lambda r, n: X[minimum(r, minimum(r * r * R, 1 << 33)), n])
