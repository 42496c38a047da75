# verdict: refuted I39
"""The exponential of the logarithm of a number of 41 or more is at least 41 over the reals: in f32 it is less for 41."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, exp, f32, kernel, load, log, maximum, sm_90a, spread, where,
)


@kernel(target=sm_90a, threads=64)
def compared(X: Tensor["M", f32], Y: Tensor["M", f32]):
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    x = load(X.tile((64,), (m,)), spread((64,), threads=64, vector=1), edge=0)
    copy(where(exp(log(maximum(x, 41.0))) >= 41.0, 1.0, 0.0), Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda _: 1)
