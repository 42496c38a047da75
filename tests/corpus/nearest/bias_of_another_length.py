# verdict: unknown
"""A bias whose length is not that of the rows."""

from argus.language import Tensor, assert_equals, block_id, ceil_div, copy, f32, gfx942, kernel, load, spread, vmem


@kernel(target=gfx942, threads=256)
def biased(X: Tensor["R N", f32], B: Tensor["P", f32], Y: Tensor["R N", f32]):
    (R, N), (P,) = X.shape, B.shape
    r, i = block_id((R, ceil_div(N, 256)))
    by = spread((256,), threads=256, vector=1)
    x = load(X[r].tile((256,), (i,)), by, edge=0)
    b = load(B.tile((256,), (i,)), by, edge=0)
    vmem.wait(0)
    copy(x + b, Y[r].tile((256,), (i,)), edge=0)
    assert_equals(Y, lambda r, n: X[r, n] + B[n])
