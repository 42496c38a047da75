# verdict: proved
"""The sum of the squares of differences, claimed as three sums."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, f32, fma, kernel, load, loop, registers, sm_90a, spread, total,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def squared_distance(X: Tensor["M N", f32], Z: Tensor["M N", f32], Y: Tensor["M", f32]):
    M, N = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    p = registers(f32, BY)
    p[:] = 0.0
    for i in loop(N):
        d = load(X.T[i].tile((64,), (m,)), BY, edge=0) - load(Z.T[i].tile((64,), (m,)), BY, edge=0)
        p[:] = fma(d, d, p)
    copy(p, Y.tile((64,), (m,)), edge=0)

    def dot(A, B, r):
        return total(lambda j: A[r, j] * B[r, j], over=N)

    assert_equals(Y, lambda r: dot(X, X, r) - 2 * dot(X, Z, r) + dot(Z, Z, r))
