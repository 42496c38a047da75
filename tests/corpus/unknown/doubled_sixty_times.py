# verdict: unknown
"""A value is added to itself sixty times: expanded, the term would have 2^60 leaves, so nothing may expand it."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, copy, f32, kernel, load, sm_90a, spread, tag,
)


@kernel(target=sm_90a, threads=32)
def doubled(X: Tensor["N", f32], Y: Tensor["N", f32]):
    (N,) = X.shape
    tag(X, lambda n: dict(n=n))
    assume(N % 128 == 0)
    (i,) = block_id((N // 128,))
    x = load(X.tile((128,), (i,)), spread((128,), threads=32, vector=4))
    for _ in range(60):
        x = x + x
    copy(x, Y.tile((128,), (i,)))
    assert_written_once(Y, lambda n: dict(n=n))
