# verdict: proved
"""Each row's sums from each element to the end: the tiles and their elements go from the end on."""

from argus.language import (
    TV, Layout, Tensor, add, assert_equals, block_id, ceil_div, copy, f32, kernel, last_lane, load, loop, registers,
    shared, sm_90a, sync, total, warp, wave, all_to_each,
)

BY = TV(Layout((32, 2), (1, 32)), Layout(1, 0), (64,))


@kernel(target=sm_90a, threads=64)
def sums_from_the_end(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    (r,) = block_id((R,))
    box, before = shared(f32, (2,)), registers(f32, BY.partial(0))
    before[:] = 0.0
    for i in loop(ceil_div(N, 64)):
        own = X[r].gather((64,), lambda t: (N - 1 - (i * 64 + t),), outside=0.0)
        run = load(own, BY, edge=0.0).scan(0, add, within=warp)
        copy(run.last(0, within=warp), box, by=last_lane)
        sync()
        sums = load(box, all_to_each(64))
        values = run + (before + sums.sum(0, where=sums.index[0] < wave))
        copy(values, Y[r].gather((64,), lambda t: (N - 1 - (i * 64 + t),)), edge=0)
        before[:] = before + sums.sum(0)
        sync()
    assert_equals(Y, lambda r, n: total(lambda j: X[r, j], over=(n, N)))
