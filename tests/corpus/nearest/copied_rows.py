# verdict: unknown
"""A copy; nothing says that the input has all rows of the output."""

from argus.language import Tensor, assert_equals, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread


@kernel(target=sm_90a, threads=128)
def row_of_row(X: Tensor["A M", f32], Y: Tensor["R M", f32]):
    (A, M), (R, _) = X.shape, Y.shape
    (r, i) = block_id((R, ceil_div(M, 256)))
    by = spread((256,), threads=128, vector=1)
    x = load(X[r].tile((256,), (i,)), by, edge=0)
    copy(x, Y[r].tile((256,), (i,)), edge=0)
    assert_equals(Y, lambda r, m: X[r, m])
