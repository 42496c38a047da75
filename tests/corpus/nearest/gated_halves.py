# verdict: unknown
"""The first half of a row by the sigmoid of the second; nothing says that these are halves."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, exp, f32, kernel, load, sm_90a, spread,
)


@kernel(target=sm_90a, threads=128)
def gated(X: Tensor["R M", f32], Y: Tensor["R N", f32]):
    (R, M), (_, N) = X.shape, Y.shape
    assume(M <= 1 << 20, N <= 1 << 20)
    r, i = block_id((R, ceil_div(N, 256)))
    by = spread((256,), threads=128, vector=1)
    a = load(X[r].tile((256,), (i,)), by, edge=0)
    b = load(X[r].gather((256,), lambda j: (N + 256 * i + j,), outside=0), by, edge=0)
    copy(a / (1.0 + exp(-b)), Y[r].tile((256,), (i,)), edge=0)
    assert_equals(Y, lambda r, n: X[r, n] / (1 + exp(-X[r, N + n])))
