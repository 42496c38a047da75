# verdict: unknown
"""Softmax weights online, with scores scaled by a number from memory that f16 does not keep above 0."""

from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, exp2, f16, f32, kernel, load, loop, maximum, minimum,
    registers, sm_90a, spread, total, where,
)

BY = spread((64,), threads=64, vector=1)
LEAST = 2.0**-100


@kernel(target=sm_90a, threads=64)
def weights(X: Tensor["M N", f32], V: Tensor["M N", f32], C: Tensor["1", f16], Y: Tensor["M", f32]):
    M, N = X.shape
    assume(N >= 1)
    (m,) = block_id((ceil_div(M, 64),))
    high, sums, out = registers(f32, BY), registers(f32, BY), registers(f32, BY)
    c = maximum(load(C.gather((64,), lambda _: (0,)), BY), LEAST).to(f32)
    high[:], sums[:], out[:] = -inf, 0.0, 0.0
    for n in loop(N):
        x = load(X.T[n].tile((64,), (m,)), BY, edge=0)
        v = load(V.T[n].tile((64,), (m,)), BY, edge=0)
        seen = where(x.index[0] + m * 64 >= n, x, -inf)
        now = maximum(high, seen)
        owed, weight = exp2((high - now) * c), exp2((seen - now) * c)
        sums[:] = sums * owed + weight
        out[:] = out * owed + weight * v
        high[:] = now
    copy(out / sums, Y.tile((64,), (m,)), edge=0)

    def score(r, n):
        return exp2(X[r, n] * maximum(C[0], LEAST))

    assert_equals(
        Y,
        lambda r: total(lambda n: score(r, n) * V[r, n], over=minimum(N, r + 1))
        / total(lambda n: score(r, n), over=minimum(N, r + 1)),
    )
