# verdict: proved
"""The sum and the greatest element of each row, by a loop of two elements a step."""

from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, greatest, kernel, load, loop, maximum, registers,
    sm_90a, spread, total,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def unrolled_by_two(X: Tensor["M N", f32], Y: Tensor["M", f32], Z: Tensor["M", f32]):
    M, N = X.shape
    assume(N % 2 == 0, N >= 2)
    (m,) = block_id((ceil_div(M, 64),))
    sums, top = registers(f32, BY), registers(f32, BY)
    sums[:] = 0.0
    top[:] = -inf
    for i in loop(N // 2):
        for part in range(2):
            v = load(X.T[2 * i + part].tile((64,), (m,)), BY, edge=0)
            sums[:] = sums + v
            top[:] = maximum(top, v)
    copy(sums, Y.tile((64,), (m,)), edge=0)
    copy(top, Z.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: total(lambda j: X[r, j], over=N))
    assert_equals(Z, lambda r: greatest(lambda j: X[r, j], over=N))
