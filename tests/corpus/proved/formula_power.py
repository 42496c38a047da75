# verdict: proved
"""A power of what is at least 0, with a number as its exponent."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, maximum, power, sm_90a, spread,
)


@kernel(target=sm_90a, threads=128)
def powers(X: Tensor["N", f32], Y: Tensor["N", f32]):
    (N,) = X.shape
    assume(N % 4 == 0)
    (block,) = block_id((ceil_div(N, 512),))
    x = maximum(load(X.tile((512,), (block,)), spread((512,), threads=128, vector=4), edge=0), 0.0)
    copy(x * power(x, 1.5), Y.tile((512,), (block,)), edge=0)
    assert_equals(Y, lambda n: maximum(X[n], 0) ** 2.5)
