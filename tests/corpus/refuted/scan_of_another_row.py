# verdict: refuted I4
"""The prefixes of one row are stored in another row."""

from argus.language import (
    Tensor, add, all_to_each, assert_covers, assert_written_once, assume, block_id, ceil_div, copy, f32, kernel,
    last_lane, load, loop, registers, replicated, runs, shared, sm_90a, sync, tag, thread, warp, wave,
)

THREADS, CHUNK = 64, 256


@kernel(target=sm_90a, threads=THREADS)
def scan(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(N % 4 == 0)
    (row,) = block_id((R,))
    by, carry = runs((CHUNK,), threads=THREADS, vector=4), registers(f32, replicated(THREADS))
    box = shared(f32, (THREADS // 32,))
    carry[:] = 0.0
    for i in loop(ceil_div(N, CHUNK)):
        v = load(X[row].tile((CHUNK,), (i,)), by, edge=0)
        run = v.scan(0, add, within=thread)
        lane = run.last(0).scan(0, add, within=warp)
        copy(lane.last(0), box, by=last_lane)
        sync()
        heads = load(box, all_to_each(THREADS))
        before = heads.sum(0, where=heads.index[0] < wave) + lane.shift(0, 1, fill=0.0)
        sums = run + before + carry
        n = i * CHUNK + sums.index[0]
        assert_covers(sums.tag.n, 0, n + 1, where=n < N)
        copy(sums, Y[R - 1 - row].tile((CHUNK,), (i,)), edge=0)
        carry += heads.sum(0)
        sync()
    assert_written_once(Y, lambda r, n: dict(r=r))
