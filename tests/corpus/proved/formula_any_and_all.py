# verdict: proved
"""Whether any element, and whether each element, of a row is above 0."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, f32, greatest, kernel, load, loop, maximum, product, registers,
    sm_90a, spread, where,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def any_and_all(X: Tensor["M N", f32], Y: Tensor["M", f32], Z: Tensor["M", f32]):
    M, N = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    a, b = registers(f32, BY), registers(f32, BY)
    a[:] = 0.0
    b[:] = 1.0
    for i in loop(N):
        v = load(X.T[i].tile((64,), (m,)), BY, edge=0)
        a[:] = where(v > 0.0, 1.0, a)
        b[:] = where(v > 0.0, b, 0.0)
    copy(a, Y.tile((64,), (m,)), edge=0)
    copy(b, Z.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: maximum(0, greatest(lambda j: where(X[r, j] > 0, 1, 0), over=N)))
    assert_equals(Z, lambda r: product(lambda j: where(X[r, j] > 0, 1, 0), over=N))
