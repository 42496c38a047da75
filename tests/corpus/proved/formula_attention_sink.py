# verdict: proved
"""Weights of attention with a sink: a score for each row that takes weight and has no value, online."""

from math import inf

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, exp, f32, kernel, load, loop, maximum, registers, sm_90a,
    spread, total,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def attention_sink(X: Tensor["M N", f32], S: Tensor["M", f32], V: Tensor["M N", f32], Y: Tensor["M", f32]):
    M, N = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    high, sums, out = registers(f32, BY), registers(f32, BY), registers(f32, BY)
    s = load(S.tile((64,), (m,)), BY, edge=0)
    high[:] = s
    sums[:] = 1.0
    out[:] = 0.0
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        w = load(V.T[i].tile((64,), (m,)), BY, edge=0)
        now = maximum(high, v)
        scale = exp(high - now)
        sums[:] = sums * scale + exp(v - now)
        out[:] = out * scale + exp(v - now) * w
        high[:] = now
    copy(out / sums, Y.tile((64,), (m,)), edge=0)
    assert_equals(
        Y,
        lambda r: total(lambda j: exp(X[r, j]) * V[r, j], over=N)
        / (exp(S[r]) + total(lambda j: exp(X[r, j]), over=N)),
    )
