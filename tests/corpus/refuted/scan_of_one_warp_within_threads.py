# verdict: refuted I3
"""Each thread scans its own run; the prefix of the lanes before is never added."""

from argus.language import (
    Tensor, add, assert_covers, assert_written_once, assume, block_id, copy, f32, kernel, load, runs, sm_90a,
    tag, thread,
)

THREADS, ROW = 32, 256


@kernel(target=sm_90a, threads=THREADS)
def prefixes(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(N % 4 == 0, N <= ROW)
    (row,) = block_id((R,))
    v = load(X[row].tile((ROW,), (0,)), runs((ROW,), threads=THREADS, vector=4), edge=0)
    run = v.scan(0, add, within=thread)
    sums = run + 0.0
    n = sums.index[0]
    assert_covers(sums.tag.n, 0, n + 1, where=n < N)
    copy(sums, Y[row].tile((ROW,), (0,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r))
