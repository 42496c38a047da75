# verdict: proved
"""Dropout with the random bits of torch on a GPU: four elements a block of bits, threads in turn, T of them."""

from argus.language import (
    Int, Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, i32, kernel, load, philox, registers, replicated,
    scalar, sm_90a, spread, where,
)

BY = spread((1024,), threads=256, vector=4)
KEEP = 644245094


@kernel(target=sm_90a, threads=256)
def dropout(X: Tensor["N", f32], S: Tensor["3", i32], Y: Tensor["N", f32], *, T: Int):
    (N,) = X.shape
    assume(N % 4 == 0)
    assume(T >= 1)
    (block,) = block_id((ceil_div(N, 1024),))
    x = load(X.tile((1024,), (block,)), BY, edge=0)
    low, high, first = (load(S[i], replicated(256)) for i in range(3))
    start = registers(i32, BY)
    start[:] = first
    (e,) = x.index
    n = block * 1024 + e
    bits = philox(start, n // 4 // T, n // 4 % T, n % 4, low, high)
    copy(where(bits <= KEEP, x * 1.25, 0.0), Y.tile((1024,), (block,)), edge=0)
    assert_equals(Y, lambda n: where(
        philox(scalar(S[2]), n // 4 // T, n // 4 % T, n % 4, scalar(S[0]), scalar(S[1])) <= KEEP, X[n] * 1.25, 0,
    ))
