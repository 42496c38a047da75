# verdict: unknown
"""A transpose whose shapes do not say that they fit."""

from argus.language import Tensor, assert_equals, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread


@kernel(target=sm_90a, threads=128)
def transposed(X: Tensor["M N", f32], Y: Tensor["P Q", f32]):
    (M, N), (P, Q) = X.shape, Y.shape
    i, j = block_id((ceil_div(P, 32), ceil_div(Q, 32)))
    by = spread((32, 32), threads=128, vector=1)
    x = load(X.T.tile((32, 32), (i, j)), by, edge=0)
    copy(x, Y.tile((32, 32), (i, j)), edge=0)
    assert_equals(Y, lambda p, q: X[q, p])
