from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, exp, f32, greatest, kernel, load, loop, maximum, registers,
    sm_90a, spread, thread, total, where,
)

CHUNK = 256


@kernel(target=sm_90a, threads=32)
def softmax(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    assume(N % 4 == 0)
    (row,) = block_id((R,))
    x, y = X[row], Y[row]
    by = spread((CHUNK,), threads=32, vector=4)
    high, sums = registers(f32, by.partial(0)), registers(f32, by.partial(0))
    high[:], sums[:] = -inf, 0.0
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by, edge=-inf)
        now = maximum(high, v.max(0, within=thread))
        guard = where(now == -inf, 0.0, now)
        sums[:] = sums * exp(high - guard) + exp(v - guard).sum(0, within=thread)
        high[:] = now
    top = high.max(0)
    whole = (sums * exp(high - top)).sum(0)
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by, edge=-inf)
        copy(exp(v - top) / whole, y.tile((CHUNK,), (i,)), edge=0)
    assert_equals(
        Y,
        lambda r, n: exp(X[r, n] - greatest(lambda j: X[r, j], over=N))
        / total(lambda j: exp(X[r, j] - greatest(lambda k: X[r, k], over=N)), over=N),
    )
