# verdict: proved
"""The sum of exponentials of a row with a linear bias that is added in place."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, exp, f32, kernel, load, loop, registers, sm_90a, spread, total,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def bias_in_place(X: Tensor["M N", f32], S: Tensor["M", f32], Y: Tensor["M", f32]):
    M, N = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    slope = load(S.tile((64,), (m,)), BY, edge=0)
    p = registers(f32, BY)
    p[:] = 0.0
    for i in loop(N):
        v = registers(f32, BY)
        v[:] = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        v[:] = v + slope * (i - N)
        v[:] = exp(v)
        p[:] = p + v
    copy(p, Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: total(lambda j: exp(X[r, j] + S[r] * (j - N)), over=N))
