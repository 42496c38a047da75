# verdict: proved
"""Leaky ReLU by a selection, in bf16."""

from argus.language import (
    Tensor, assert_equals, assume, bf16, block_id, ceil_div, copy, kernel, load, sm_90a, spread, where,
)


@kernel(target=sm_90a, threads=64)
def leaky_relu(X: Tensor["M N", bf16], Y: Tensor["M N", bf16]):
    M, N = X.shape
    assume(N % 8 == 0)
    m, n = block_id((ceil_div(M, 16), ceil_div(N, 64)))
    by = spread((16, 64), threads=64, vector=8)
    v = load(X.tile((16, 64), (m, n)), by, edge=0)
    copy(where(v > 0.0, v, v * 0.125), Y.tile((16, 64), (m, n)), edge=0)
    assert_equals(Y, lambda r, c: where(X[r, c] > 0, X[r, c], X[r, c] / 8))
