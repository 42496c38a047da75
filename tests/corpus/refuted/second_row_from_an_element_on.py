# verdict: refuted I39
"""The second row of each tile is taken from the middle of its third row on: the claim says, from its beginning."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, copy, f32, kernel, load, minimum, shared, sm_90a, spread, sync, tag,
)


@kernel(target=sm_90a, threads=64)
def first_rows(X: Tensor["M N", f32], Y: Tensor["M N", f32]):
    M, N = X.shape
    assume(M % 32 == 0, N % 16 == 0, M * N <= 1 << 28)
    tag(X, lambda m, n: dict(m=m, n=n))
    m, n = block_id((M // 32, N // 16))
    by = spread((32, 16), threads=64, vector=1)
    held = shared(f32, (32, 16))
    copy(load(X.tile((32, 16), (m, n)), by), held)
    sync()
    copy(load(held.gather((32, 16), lambda r, c: (minimum((r * 16 + c) // 40, 1), c)), by), Y.tile((32, 16), (m, n)))
    assert_equals(Y, lambda m, n: X[m // 32 * 32 + minimum(m % 32 // 2, 1), n])
