# verdict: proved
"""Log-softmax as `(v - m) - log s`, of rows that one warp holds."""

from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, copy, exp, f32, greatest, kernel, load, log, sm_90a, spread, total,
)


@kernel(target=sm_90a, threads=32)
def log_softmax(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    assume(N % 4 == 0, N >= 4, N <= 256)
    (row,) = block_id((R,))
    by = spread((256,), threads=32, vector=4)
    v = load(X[row].tile((256,), (0,)), by, edge=-inf)
    top = v.max(0)
    copy((v - top) - log(exp(v - top).sum(0)), Y[row].tile((256,), (0,)), edge=0)
    assert_equals(
        Y,
        lambda r, n: X[r, n]
        - greatest(lambda j: X[r, j], over=N)
        - log(total(lambda j: exp(X[r, j] - greatest(lambda k: X[r, k], over=N)), over=N)),
    )
