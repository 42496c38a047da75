# verdict: unknown
"""Rows shifted by one; nothing says how long the rows of the output are."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, f32, gfx942, kernel, load, spread, vmem, where,
)


@kernel(target=gfx942, threads=128)
def padded(X: Tensor["R N", f32], Y: Tensor["R M", f32]):
    (R, N), (_, M) = X.shape, Y.shape
    (r, i) = block_id((R, ceil_div(M, 256)))
    by = spread((256,), threads=128, vector=1)
    x = load(X[r].gather((256,), lambda j: (256 * i + j - 1,), outside=0), by, edge=0)
    vmem.wait(0)
    copy(x, Y[r].tile((256,), (i,)), edge=0)
    assert_equals(Y, lambda r, m: where(m == 0, 0, X[r, m - 1]))
