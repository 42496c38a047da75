# verdict: proved
"""Row softmax whose reference is raised only where an element is above it by more than a threshold."""

from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, exp, f32, kernel, load, loop, maximum, registers, sm_90a,
    spread, total, where,
)

BY = spread((64,), threads=64, vector=1)
THRESHOLD = 8.0


@kernel(target=sm_90a, threads=64)
def reference_of_a_threshold(X: Tensor["M N", f32], Y: Tensor["M N", f32]):
    M, N = X.shape
    assume(N >= 1)
    (m,) = block_id((ceil_div(M, 64),))
    ref, sums = registers(f32, BY), registers(f32, BY)
    ref[:] = -inf
    sums[:] = 0.0
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        now = where(v > ref + THRESHOLD, v, ref)
        sums[:] = sums * exp(ref - now) + exp(v - now)
        ref[:] = now
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        copy(exp(v - ref) / sums, Y.T[i].tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r, n: exp(X[r, n]) / total(lambda j: exp(X[r, j]), over=N))
