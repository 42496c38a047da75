# verdict: refuted I39
"""One and a half is no integer: what is stored in a byte is 1."""

from math import inf

from argus.language import (
    Tensor, argmax, assert_equals, assume, block_id, ceil_div, copy, f32, greatest, i8, i64, kernel, load, loop,
    maximum_nan, minimum, registers, sm_90a, spread, where,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def half_truths(X: Tensor["M N", f32], I: Tensor["M", i64], B: Tensor["M", i8]):
    M, N = X.shape
    assume(N >= 1)
    assume(N <= 1 << 24)
    (m,) = block_id((ceil_div(M, 64),))
    best, at = registers(f32, BY), registers(f32, BY)
    best[:] = -inf
    at[:] = inf
    for i in loop(N):
        best[:] = maximum_nan(best, load(X.T[i].tile((64,), (m,)), BY, edge=0))
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        at[:] = minimum(at, where((v == best) | (v != v), i, inf))
    copy(at.to(i64), I.tile((64,), (m,)), edge=0)
    copy(where(best > 0.5, 1.5, 0.0).to(i8), B.tile((64,), (m,)), edge=0)
    assert_equals(I, lambda r: argmax(lambda j: X[r, j], over=N))
    assert_equals(B, lambda r: where(greatest(lambda j: X[r, j], over=N) > 0.5, 1.5, 0))
