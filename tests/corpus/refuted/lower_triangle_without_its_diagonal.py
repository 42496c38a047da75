# verdict: refuted I39
"""The lower triangle of a matrix, scaled, without the tiles on the diagonal, which the claim includes."""

from argus.language import Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread, when

TILE = 32


@kernel(target=sm_90a, threads=128)
def lower(X: Tensor["N N", f32], Y: Tensor["N N", f32]):
    N = X.shape[0]
    assume(N % 4 == 0)
    m, n = block_id((ceil_div(N, TILE), ceil_div(N, TILE)))
    with when(n < m):
        v = load(X.tile((TILE, TILE), (m, n)), spread((TILE, TILE), threads=128, vector=4), edge=0)
        copy(v * 0.5, Y.tile((TILE, TILE), (m, n)), edge=0)
    assert_equals(Y, lambda r, c: X[r, c] / 2, where=lambda r, c: c <= r)
