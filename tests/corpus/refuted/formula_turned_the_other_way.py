# verdict: refuted I39
"""Pairs of columns turned by the opposite angle."""

from argus.language import (
    Tensor, assert_equals, block_id, copy, f32, fma, kernel, load, sm_90a, spread, where,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def rotary_embedding(X: Tensor["M 128", f32], C: Tensor["M 64", f32], S: Tensor["M 64", f32], Y: Tensor["M 128", f32]):
    M = X.shape[0]
    (m,) = block_id((M,))
    a = load(X[m].tile((64,), (0,)), BY, edge=0)
    b = load(X[m].tile((64,), (1,)), BY, edge=0)
    c = load(C[m].tile((64,), (0,)), BY, edge=0)
    s = load(S[m].tile((64,), (0,)), BY, edge=0)
    copy(a * c + b * s, Y[m].tile((64,), (0,)), edge=0)
    copy(fma(b, c, a * s), Y[m].tile((64,), (1,)), edge=0)

    def formula(r, n):
        first = X[r, n] * C[r, n] - X[r, n + 64] * S[r, n]
        return where(n < 64, first, X[r, n] * C[r, n - 64] + X[r, n - 64] * S[r, n - 64])

    assert_equals(Y, formula)
