# verdict: refuted I39
"""What bf16 leaves of a number of f32 has up to 16 digits: bf16 has it only after one more rounding."""

from argus.language import (
    Tensor, assert_equals, bf16, block_id, ceil_div, copy, f32, kernel, load, round_bf16, sm_90a, spread, where,
)


@kernel(target=sm_90a, threads=64)
def parts(X: Tensor["M", f32], Y: Tensor["M", f32]):
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    x = load(X.tile((64,), (m,)), spread((64,), threads=64, vector=1), edge=0)
    left = x - round_bf16(x)
    copy(where(left.to(bf16).to(f32) == left, 1.0, 0.0), Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda _: 1)
