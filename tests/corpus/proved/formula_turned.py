# verdict: proved
"""A matrix turned round and scaled: the formula reads at exchanged coordinates, and divides by a size."""

from argus.language import Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread


@kernel(target=sm_90a, threads=64)
def turned(X: Tensor["M N", f32], Y: Tensor["N M", f32]):
    M, N = X.shape
    assume(N % 4 == 0, M >= 1)
    m, n = block_id((ceil_div(M, 16), ceil_div(N, 64)))
    v = load(X.tile((16, 64), (m, n)), spread((16, 64), threads=64, vector=4), edge=0)
    copy(v / M, Y.T.tile((16, 64), (m, n)), edge=0)
    assert_equals(Y, lambda c, r: X[r, c] / M)
