# verdict: refuted I39
"""The carry is the sum of the chunk before alone."""

from argus.language import (
    Tensor, add, all_to_each, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, last_lane, load, loop,
    registers, replicated, runs, shared, sm_90a, sync, total, warp, wave,
)

THREADS, CHUNK = 64, 128


@kernel(target=sm_90a, threads=THREADS)
def cumulative_sums(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    assume(N % 2 == 0)
    (row,) = block_id((R,))
    by, carry = runs((CHUNK,), threads=THREADS, vector=2), registers(f32, replicated(THREADS))
    box = shared(f32, (THREADS // 32,))
    carry[:] = 0.0
    for i in loop(ceil_div(N, CHUNK)):
        run = load(X[row].tile((CHUNK,), (i,)), by, edge=0).scan(0, add, within=warp)
        copy(run.last(0, within=warp), box, by=last_lane)
        sync()
        sums = load(box, all_to_each(THREADS))
        before = carry + sums.sum(0, where=sums.index[0] < wave)
        copy(run + before, Y[row].tile((CHUNK,), (i,)), edge=0)
        carry[:] = sums.sum(0)
        sync()
    assert_equals(Y, lambda r, n: total(lambda j: X[r, j], over=n + 1))
