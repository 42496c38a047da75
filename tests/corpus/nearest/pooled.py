# verdict: unknown
"""Maxima of pairs; nothing says that the input is long enough."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, gfx942, kernel, load, maximum, spread, vmem,
)


@kernel(target=gfx942, threads=128)
def pooled(X: Tensor["R N", f32], Y: Tensor["R M", f32]):
    (R, N), (_, M) = X.shape, Y.shape
    assume(N <= 1 << 20, M <= 1 << 20)
    r, i = block_id((R, ceil_div(M, 128)))
    by = spread((128,), threads=128, vector=1)
    a = load(X[r].gather((128,), lambda j: (2 * (128 * i + j),), outside=0), by, edge=0)
    b = load(X[r].gather((128,), lambda j: (2 * (128 * i + j) + 1,), outside=0), by, edge=0)
    vmem.wait(0)
    copy(maximum(a, b), Y[r].tile((128,), (i,)), edge=0)
    assert_equals(Y, lambda r, m: maximum(X[r, 2 * m], X[r, 2 * m + 1]))
