# verdict: proved
"""Two outputs, one claim each: the greatest and the least element of each row."""

from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, copy, f32, first_lane, greatest, kernel, least, load, sm_90a, spread,
)


@kernel(target=sm_90a, threads=32)
def row_range(X: Tensor["R N", f32], High: Tensor["R", f32], Low: Tensor["R", f32]):
    R, N = X.shape
    assume(N % 4 == 0, N >= 4, N <= 256)
    (row,) = block_id((R,))
    by = spread((256,), threads=32, vector=4)
    copy(load(X[row].tile((256,), (0,)), by, edge=-inf).max(0), High[row], by=first_lane, edge=0)
    copy(load(X[row].tile((256,), (0,)), by, edge=inf).min(0), Low[row], by=first_lane, edge=0)
    assert_equals(High, lambda r: greatest(lambda j: X[r, j], over=N))
    assert_equals(Low, lambda r: least(lambda j: X[r, j], over=N))
