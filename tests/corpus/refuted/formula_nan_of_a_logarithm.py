# verdict: refuted I39
"""A logarithm that has no value is not itself: where it is NaN, 5 is stored, and the claim says 7 of all elements."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, log, sm_90a, spread, where,
)


@kernel(target=sm_90a, threads=128)
def nan_of_a_logarithm(X: Tensor["N", f32], Y: Tensor["N", f32]):
    (N,) = X.shape
    assume(N % 4 == 0)
    (block,) = block_id((ceil_div(N, 512),))
    x = log(load(X.tile((512,), (block,)), spread((512,), threads=128, vector=4), edge=1))
    copy(where(x != x, 5.0, 7.0), Y.tile((512,), (block,)), edge=0)
    assert_equals(Y, lambda n: 7)
