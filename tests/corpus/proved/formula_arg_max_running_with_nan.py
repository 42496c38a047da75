# verdict: proved
"""The greatest element of each row and its lowest place, by a running maximum; NaN counts as the greatest, as in torch."""

from math import inf

from argus.language import (
    Tensor, argmax, assert_equals, assume, block_id, ceil_div, copy, f32, greatest, kernel, load, loop, maximum_nan,
    registers, sm_90a, spread, where,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def arg_max_running_with_nan(X: Tensor["M N", f32], Y: Tensor["M", f32], I: Tensor["M", f32]):
    M, N = X.shape
    assume(N >= 1)
    (m,) = block_id((ceil_div(M, 64),))
    best, at = registers(f32, BY), registers(f32, BY)
    best[:] = -inf
    at[:] = 0.0
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        at[:] = where((v > best) | ((v != v) & (best == best)), i, at)
        best[:] = maximum_nan(best, v)
    copy(best, Y.tile((64,), (m,)), edge=0)
    copy(at, I.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: greatest(lambda j: X[r, j], over=N))
    assert_equals(I, lambda r: argmax(lambda j: X[r, j], over=N))
