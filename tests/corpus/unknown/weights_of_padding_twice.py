# verdict: unknown
"""Weights of padding: past the end of a row the exponential of 0, twice, is added for each element."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, block_id, ceil_div, copy, exp, f32, first_lane, kernel, load, loop,
    registers, sm_90a, spread, tag, where,
)

BY = spread((256,), threads=32, vector=4)


@kernel(target=sm_90a, threads=32)
def weights(X: Tensor["R N", f32], Y: Tensor["R", f32]):
    R, N = X.shape
    assume(N % 4 == 0, N >= 1)
    tag(X, lambda r, n: dict(r=r, n=n))
    (row,) = block_id((R,))
    sums = registers(f32, BY)
    sums[:] = 0.0
    for i in loop(ceil_div(N, 256)):
        x = load(X[row].tile((256,), (i,)), BY, edge=0)
        sums[:] = sums + 2.0 * exp(where(x.index[0] + 256 * i < N, x, 0.0))
    z = sums.sum(0)
    assert_covers(z.tag.n, 0, N)
    copy(z, Y[row], by=first_lane, edge=0)
    assert_written_once(Y, lambda r: dict(r=r))
