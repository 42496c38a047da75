# verdict: refuted I39
"""The mean of the elements that a mask lets through, by a count of at least 2."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, loop, maximum, registers, sm_90a, spread,
    total, where,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def mean_of_at_least_two(X: Tensor["M N", f32], W: Tensor["M N", f32], Y: Tensor["M", f32]):
    M, N = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    sums, count = registers(f32, BY), registers(f32, BY)
    sums[:] = 0.0
    count[:] = 0.0
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        w = load(W.T[i].tile((64,), (m,)), BY, edge=0)
        sums[:] = sums + where(w > 0.0, v, 0.0)
        count[:] = count + where(w > 0.0, 1.0, 0.0)
    copy(sums / maximum(count, 2.0), Y.tile((64,), (m,)), edge=0)
    assert_equals(
        Y,
        lambda r: total(lambda j: where(W[r, j] > 0, X[r, j], 0), over=N)
        / maximum(total(lambda j: where(W[r, j] > 0, 1, 0), over=N), 1),
    )
