# verdict: proved
"""Elements times the scale of their block of 64."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread,
)


@kernel(target=sm_90a, threads=64)
def dequantised(X: Tensor["M K", f32], S: Tensor["M B", f32], Y: Tensor["M K", f32]):
    (M, K), (_, B) = X.shape, S.shape
    assume(K == 64 * B)
    m, k = block_id((ceil_div(M, 16), B))
    by = spread((16, 64), threads=64, vector=4)
    v = load(X.tile((16, 64), (m, k)), by, edge=0)
    scale = load(S.T[k].tile((16,), (m,)), by.axis(0), edge=0)
    copy(v * scale, Y.tile((16, 64), (m, k)), edge=0)
    assert_equals(Y, lambda r, c: X[r, c] * S[r, c // 64])
