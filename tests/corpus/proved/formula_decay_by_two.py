# verdict: proved
"""A state that decays, two steps at a time."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, loop, product, registers, sm_90a, spread,
    total,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def decay_by_two(X: Tensor["M N", f32], A: Tensor["M N", f32], H: Tensor["M", f32], Y: Tensor["M", f32]):
    M, N = X.shape
    assume(N % 2 == 0)
    (m,) = block_id((ceil_div(M, 64),))
    h = registers(f32, BY)
    h[:] = load(H.tile((64,), (m,)), BY, edge=0)
    for i in loop(N // 2):
        for part in range(2):
            j = 2 * i + part
            h[:] = load(A.T[j].tile((64,), (m,)), BY, edge=0) * h + load(X.T[j].tile((64,), (m,)), BY, edge=0)
    copy(h, Y.tile((64,), (m,)), edge=0)

    def since(r, j):
        return product(lambda l: A[r, l], over=(j, N))

    assert_equals(Y, lambda r: H[r] * since(r, 0) + total(lambda j: X[r, j] * since(r, j + 1), over=N))
