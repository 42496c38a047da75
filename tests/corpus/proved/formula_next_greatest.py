# verdict: proved
"""The greatest element of each row below its greatest one; -inf where there is none."""

from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, greatest, kernel, load, loop, maximum, registers,
    sm_90a, spread, where,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def next_greatest(X: Tensor["M N", f32], Y: Tensor["M", f32]):
    M, N = X.shape
    assume(N >= 1)
    (m,) = block_id((ceil_div(M, 64),))
    best, two = registers(f32, BY), registers(f32, BY)
    best[:] = -inf
    two[:] = -inf
    for i in loop(N):
        best[:] = maximum(best, load(X.T[i].tile((64,), (m,)), BY, edge=0))
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        two[:] = maximum(two, where(v < best, v, -inf))
    copy(two, Y.tile((64,), (m,)), edge=0)

    def below(r, j):
        return where(X[r, j] < greatest(lambda l: X[r, l], over=N), X[r, j], -inf)

    assert_equals(Y, lambda r: greatest(lambda j: below(r, j), over=N))
