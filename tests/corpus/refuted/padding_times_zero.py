# verdict: refuted I4
"""Deviations from the mean are infinite in the padding and are multiplied by 0 before the sum: NaN."""

from math import inf

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, block_id, copy, f32, kernel, load, ones, sm_90a, spread, tag, warp,
    where,
)

THREADS, CHUNK = 32, 128


@kernel(target=sm_90a, threads=THREADS)
def drifted(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(N >= 1, N <= CHUNK)
    (row,) = block_id((R,))
    by = spread((CHUNK,), threads=THREADS, vector=1)
    v = load(X[row].tile((CHUNK,), (0,)), by, edge=-inf)
    valid = v.index[0] < N
    count = ones(f32, by).sum(0, within=warp, where=valid)
    mean = v.sum(0, within=warp, where=valid) / where(count == 0.0, 1.0, count)
    assert_covers(mean.tag.n, 0, N)
    drift = ((v - mean) * 0.0).sum(0, within=warp)
    copy(v + drift, Y[row].tile((CHUNK,), (0,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
