# verdict: refuted I39
"""The sum of the elements above a threshold: those that only reach it are left out."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, f32, kernel, load, loop, registers, sm_90a, spread, total, where,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def sum_above_a_threshold(X: Tensor["M N", f32], T: Tensor["M", f32], Y: Tensor["M", f32], C: Tensor["M", f32]):
    M, N = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    t = load(T.tile((64,), (m,)), BY, edge=0)
    s, c = registers(f32, BY), registers(f32, BY)
    s[:] = 0.0
    c[:] = 0.0
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        s[:] = s + where(v > t, v, 0.0)
        c[:] = where(v >= t, c + 1.0, c)
    copy(s, Y.tile((64,), (m,)), edge=0)
    copy(c, C.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: total(lambda j: where(X[r, j] >= T[r], X[r, j], 0), over=N))
    assert_equals(C, lambda r: total(lambda j: where(X[r, j] >= T[r], 1, 0), over=N))
