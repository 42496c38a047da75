# verdict: refuted I39
"""Rounded log2(e) and ln(2) cancel but for their rounding, which is then amplified: 2 to a large power, not 1."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, exp2, f32, kernel, load, sm_90a, spread,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def amplified_constants(X: Tensor["N", f32], Y: Tensor["N", f32]):
    (N,) = X.shape
    (i,) = block_id((ceil_div(N, 64),))
    x = load(X.tile((64,), (i,)), BY, edge=0)
    copy(exp2((x * 1.4426950408889634 * 0.6931471805599453 - x) * 1e25), Y.tile((64,), (i,)), edge=0)
    assert_equals(Y, lambda n: 1.0 + 0.0 * X[n])
