# verdict: refuted I39
"""exp as a power of 2, with the square root of 2 in place of log2(e)."""

from argus.language import Tensor, assert_equals, block_id, ceil_div, copy, exp, exp2, f32, kernel, load, sm_90a, spread

LOG2_E = 1.4142135623730951


@kernel(target=sm_90a, threads=64)
def exponential(X: Tensor["R", f32], Y: Tensor["R", f32]):
    (R,) = X.shape
    (block,) = block_id((ceil_div(R, 64),))
    x = load(X.tile((64,), (block,)), spread((64,), threads=64, vector=1), edge=0)
    copy(exp2(x * LOG2_E), Y.tile((64,), (block,)), edge=0)
    assert_equals(Y, lambda r: exp(X[r]))
