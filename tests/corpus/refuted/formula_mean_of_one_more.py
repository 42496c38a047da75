# verdict: refuted I39
"""Welford's updates: each divides by one more than the elements so far."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, loop, registers, sm_90a, spread,
    total,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def welford(X: Tensor["M N", f32], Y: Tensor["M", f32], V: Tensor["M", f32]):
    M, N = X.shape
    assume(N >= 1)
    (m,) = block_id((ceil_div(M, 64),))
    mean, m2 = registers(f32, BY), registers(f32, BY)
    mean[:] = 0.0
    m2[:] = 0.0
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        d = v - mean
        mean[:] = mean + d / (i + 2)
        m2[:] = m2 + d * (v - mean)
    copy(mean, Y.tile((64,), (m,)), edge=0)
    copy(m2 / N, V.tile((64,), (m,)), edge=0)

    def mean(r):
        return total(lambda j: X[r, j], over=N) / N

    assert_equals(Y, mean)
    assert_equals(V, lambda r: total(lambda j: X[r, j] * X[r, j], over=N) / N - mean(r) * mean(r))
