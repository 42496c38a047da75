# verdict: proved
"""Row softmax of any length, online: the sum is rescaled whenever the maximum grows."""

from math import inf

from argus.language import (
    Tensor, add, all_to_each, assert_equals, assume, block_id, ceil_div, copy, exp, f32, first_lane, greatest, kernel,
    load, loop, maximum, registers, shared, sm_90a, spread, sync, thread, total, warp, where,
)

THREADS, CHUNK = 64, 256


def across_cta(x, op):
    """Block-wide fold of one value per thread: warp shuffles, then shared memory; every thread gets the result."""
    box = shared(f32, (THREADS // 32,))
    copy(x.fold(0, op, within=warp), box, by=first_lane)
    sync()
    return load(box, all_to_each(THREADS)).fold(0, op, within=thread)


@kernel(target=sm_90a, threads=THREADS)
def softmax(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    assume(N % 4 == 0)
    (row,) = block_id((R,))
    x, y = X[row], Y[row]
    by = spread((CHUNK,), threads=THREADS, vector=4)
    high, sums = registers(f32, by.partial(0)), registers(f32, by.partial(0))
    high[:], sums[:] = -inf, 0.0
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by, edge=-inf)
        now = maximum(high, v.max(0, within=thread))
        guard = where(now == -inf, 0.0, now)
        sums[:] = sums * exp(high - guard) + exp(v - guard).sum(0, within=thread)
        high[:] = now
    top = across_cta(high, maximum)
    whole = across_cta(sums * exp(high - top), add)
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by, edge=-inf)
        copy(exp(v - top) / whole, y.tile((CHUNK,), (i,)), edge=0)
    assert_equals(
        Y,
        lambda r, n: exp(X[r, n] - greatest(lambda j: X[r, j], over=N))
        / total(lambda j: exp(X[r, j] - greatest(lambda k: X[r, k], over=N)), over=N),
    )
