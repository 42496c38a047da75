# verdict: unknown
"""Scores are multiplied by their index in the chunk, and the second pass uses chunks of another size."""

from math import inf

from argus.language import (
    Tensor, add, assert_covers, assert_written_once, assume, block_id, ceil_div, copy, exp, f32, kernel, load, loop,
    maximum, registers, sm_90a, spread, tag, thread, warp, where,
)

THREADS, CHUNK = 32, 128


@kernel(target=sm_90a, threads=THREADS)
def softmax(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(N % 128 == 0)
    (row,) = block_id((R,))
    x, y = X[row], Y[row]
    by = spread((CHUNK,), threads=THREADS, vector=4)
    high, total = registers(f32, by.partial(0)), registers(f32, by.partial(0))
    high[:], total[:] = -inf, 0.0
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by)
        v = v * v.index[0]
        now = maximum(high, v.max(0, within=thread))
        guard = where(now == -inf, 0.0, now)
        total[:] = total * exp(high - guard) + exp(v - guard).sum(0, within=thread)
        high[:] = now
    top = high.fold(0, maximum, within=warp)
    whole = (total * exp(high - top)).fold(0, add, within=warp)
    assert_covers(whole.tag.n, 0, N)
    half = spread((64,), threads=THREADS, vector=2)
    for i in loop(ceil_div(N, 64)):
        v = load(x.tile((64,), (i,)), half)
        v = v * v.index[0]
        copy(exp(v - top) / whole, y.tile((64,), (i,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
