# verdict: proved
"""Prefix sums of rows of 256: a run for each thread, and the totals of the lanes before it."""

from argus.language import (
    Tensor, add, assert_equals, block_id, copy, f32, kernel, load, runs, sm_90a, thread, total, warp,
)


@kernel(target=sm_90a, threads=32)
def prefix_sums_of_a_warp(X: Tensor["R 256", f32], Y: Tensor["R 256", f32]):
    (row,) = block_id((X.shape[0],))
    v = load(X[row].tile((256,), (0,)), runs((256,), threads=32, vector=4))
    run = v.scan(0, add, within=thread)
    lane = run.last(0).scan(0, add, within=warp)
    copy(run + lane.shift(0, 1, fill=0.0), Y[row].tile((256,), (0,)))
    assert_equals(Y, lambda r, n: total(lambda j: X[r, j], over=n + 1))
