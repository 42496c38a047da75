# verdict: proved
"""Attention by threads, in blocks of four keys: sums are above 0, so a guard against 0 is no case; LSE in base e."""

from math import inf, log

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, exp2, f32, fma, kernel, load, log as ln, log2, loop,
    maximum, registers, sm_90a, spread, total, where,
)

BY = spread((64,), threads=64, vector=1)
LEAST = 2.0**-100


@kernel(target=sm_90a, threads=64)
def attention(
    X: Tensor["N M", f32], V: Tensor["N M", f32], C: Tensor["1", f32], Y: Tensor["M", f32], L: Tensor["M", f32]
):
    N, M = X.shape
    assume(N >= 1)
    (m,) = block_id((ceil_div(M, 64),))
    high, sums, out = registers(f32, BY), registers(f32, BY), registers(f32, BY)
    c = maximum(load(C.gather((64,), lambda _: (0,)), BY), LEAST)
    high[:], sums[:], out[:] = -inf, 0.0, 0.0
    for n in loop(N - 1, -1, step=-1):
        x = load(X[n].tile((64,), (m,)), BY, edge=0)
        v = load(V[n].tile((64,), (m,)), BY, edge=0)
        now = maximum(high, x)
        owed, weight = exp2((high - now) * c), exp2(fma(x, c, now * -c))
        sums[:] = sums * owed + weight
        out[:] = out * owed + weight * v
        high[:] = now
    copy(out * (1.0 / where(sums == 0, 1.0, sums)), Y.tile((64,), (m,)), edge=0)
    copy((log2(sums) + high * c) * log(2.0), L.tile((64,), (m,)), edge=0)

    def weights(r):
        return total(lambda n: exp2(X[n, r] * maximum(C[0], LEAST)), over=N)

    assert_equals(Y, lambda r: total(lambda n: exp2(X[n, r] * maximum(C[0], LEAST)) * V[n, r], over=N) / weights(r))
    assert_equals(L, lambda r: ln(weights(r)))
