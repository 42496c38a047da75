# verdict: unknown
"""Integers are multiplied by 1/2, which rounds to 0 in integer arithmetic."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, copy, i32, kernel, load, sm_90a, spread, tag,
)


@kernel(target=sm_90a, threads=32)
def halved(X: Tensor["N", i32], Y: Tensor["N", i32]):
    (N,) = X.shape
    tag(X, lambda n: dict(n=n))
    assume(N % 128 == 0)
    (i,) = block_id((N // 128,))
    copy(load(X.tile((128,), (i,)), spread((128,), threads=32, vector=4)) * 0.5, Y.tile((128,), (i,)))
    assert_written_once(Y, lambda n: dict(n=n))
