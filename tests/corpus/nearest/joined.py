# verdict: unknown
"""Rows of X, then of Z; nothing says that the output is no longer than both."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread, where,
)


@kernel(target=sm_90a, threads=128)
def joined(X: Tensor["R N", f32], Z: Tensor["R K", f32], Y: Tensor["R M", f32]):
    (R, N), (_, K), (_, M) = X.shape, Z.shape, Y.shape
    assume(N <= 1 << 20, K <= 1 << 20, M <= 1 << 20)
    r, i = block_id((R, ceil_div(M, 256)))
    by = spread((256,), threads=128, vector=1)
    x = load(X[r].tile((256,), (i,)), by, edge=0)
    z = load(Z[r].gather((256,), lambda j: (256 * i + j - N,), outside=0), by, edge=0)
    copy(x + z, Y[r].tile((256,), (i,)), edge=0)
    assert_equals(Y, lambda r, m: where(m < N, X[r, m], Z[r, m - N]))
