# verdict: proved
"""One axis of blocks numbers the rows of three axes, of which two counts are literal."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread, tag, unflatten,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def copied(X: Tensor["A 4 5 N", f32], Y: Tensor["A 5 4 N", f32]):
    A, _, _, N = X.shape
    tag(X, lambda i, j, k, n: dict(i=i, j=j, k=k, n=n))
    assume(A <= 1 << 20)
    b, n = block_id((A * 20, ceil_div(N, 64)))
    i, j, k = unflatten(b, (A, 4, 5))
    copy(load(X[i, j, k].tile((64,), (n,)), BY, edge=0), Y[i, k, j].tile((64,), (n,)), edge=0)
    assert_written_once(Y, lambda i, k, j, n: dict(i=i, j=j, k=k, n=n))
