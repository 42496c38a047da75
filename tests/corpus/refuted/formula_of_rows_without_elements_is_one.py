# verdict: refuted I39
"""Weighted means of the elements that a row sees: 1 is added to a sum that is 0, to the mean instead of to the sum."""

from math import inf, log

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, exp2, f32, kernel, load, log as ln, log2, loop, maximum,
    minimum, registers, sm_90a, spread, total, where,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def means(X: Tensor["N M", f32], V: Tensor["N M", f32], Y: Tensor["M", f32], L: Tensor["M", f32]):
    N, M = X.shape
    assume(N >= 1)
    (m,) = block_id((ceil_div(M, 64),))
    high, sums, out = registers(f32, BY), registers(f32, BY), registers(f32, BY)
    high[:], sums[:], out[:] = -inf, 0.0, 0.0
    for n in loop(N):
        x = load(X[n].tile((64,), (m,)), BY, edge=0)
        v = load(V[n].tile((64,), (m,)), BY, edge=0)
        x = where(n + 3 <= m * 64 + x.index[0], x, -inf)
        now = maximum(high, x)
        guard = where(now == -inf, 0.0, now)
        owed, weight = exp2(high - guard), exp2(x - guard)
        sums[:] = sums * owed + weight
        out[:] = out * owed + weight * v
        high[:] = now
    copy(where(sums == 0, 1.0, out * (1.0 / where(sums == 0, 1.0, sums))), Y.tile((64,), (m,)), edge=0)
    copy((log2(sums) + high) * log(2.0), L.tile((64,), (m,)), edge=0)

    def seen(r):
        return maximum(0, minimum(N, r - 2))

    def weights(r):
        return total(lambda n: exp2(X[n, r]), over=seen(r))

    assert_equals(
        Y, lambda r: where(seen(r) >= 1, total(lambda n: exp2(X[n, r]) * V[n, r], over=seen(r)) / weights(r), 0)
    )
    assert_equals(L, lambda r: ln(weights(r)))
