# verdict: proved
"""Prefix sums of each row."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, f32, kernel, load, loop, registers, sm_90a, spread, total,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def prefix_sums(X: Tensor["M N", f32], Y: Tensor["N M", f32]):
    M, N = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    h = registers(f32, BY)
    h[:] = 0.0
    for i in loop(N):
        h[:] = h + load(X.T[i].tile((64,), (m,)), BY, edge=0)
        copy(h, Y[i].tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda n, r: total(lambda j: X[r, j], over=n + 1))
