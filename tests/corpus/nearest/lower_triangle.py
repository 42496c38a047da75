# verdict: unknown
"""A triangle: its tags are claimed, what the mask leaves out is not."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread, tag, where,
)


@kernel(target=sm_90a, threads=128)
def no_claim_of_mask(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(N % 4 == 0)
    r, n = block_id((ceil_div(R, 32), ceil_div(N, 64)))
    x = load(X.tile((32, 64), (r, n)), spread((32, 64), threads=128, vector=4), edge=0)
    row, column = x.index
    copy(where(64 * n + column <= 32 * r + row, x, 0.0), Y.tile((32, 64), (r, n)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
