# verdict: refuted I39
"""An integer and one more differ over the reals: in f32 they are one number from 2^24 on."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, f32, floor, kernel, load, sm_90a, spread, where,
)


@kernel(target=sm_90a, threads=64)
def compared(X: Tensor["M", f32], Y: Tensor["M", f32]):
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    x = floor(load(X.tile((64,), (m,)), spread((64,), threads=64, vector=1), edge=0))
    copy(where(x + 1.0 > x, 1.0, 0.0), Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda _: 1)
