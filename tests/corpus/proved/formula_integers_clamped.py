# verdict: proved
"""Integers clamped, and their sums as numbers."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, f32, i32, kernel, load, loop, maximum, minimum, registers,
    scalar, sm_90a, spread, total,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def integers_clamped(X: Tensor["M N", i32], Y: Tensor["N M", i32], Z: Tensor["M", f32]):
    M, N = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    sums = registers(f32, BY)
    sums[:] = 0.0
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        copy(minimum(maximum(v, 0), 255), Y[i].tile((64,), (m,)), edge=0)
        sums[:] = sums + v.to(f32)
    copy(sums, Z.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda n, r: minimum(maximum(scalar(X[r, n]), 0), 255))
    assert_equals(Z, lambda r: total(lambda j: 1 * scalar(X[r, j]), over=N))
