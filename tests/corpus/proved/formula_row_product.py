# verdict: proved
"""The product of each row."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, f32, kernel, load, loop, product, registers, sm_90a, spread,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def row_product(X: Tensor["M N", f32], Y: Tensor["M", f32]):
    M, N = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    p = registers(f32, BY)
    p[:] = 1.0
    for i in loop(N):
        p[:] = p * load(X.T[i].tile((64,), (m,)), BY, edge=0)
    copy(p, Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: product(lambda j: X[r, j], over=N))
