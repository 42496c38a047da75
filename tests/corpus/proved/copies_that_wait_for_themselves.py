# verdict: proved
"""`wait=True` waits right after the copy; it is one text for both targets, here gfx942."""

from argus.language import (
    Swizzle, Tensor, assert_equals, block_id, ceil_div, copy, f32, gfx942, kernel, load, shared, sm_90a, spread, sync,
)


@kernel(target=(gfx942, sm_90a), threads=128)
def transpose(X: Tensor["M N", f32], Y: Tensor["N M", f32]):
    M, N = X.shape
    m, n = block_id((ceil_div(M, 32), ceil_div(N, 32)))
    by = spread((32, 32), vector=1)
    box = shared(f32, (32, 32), swizzle=Swizzle(5, 0, 5), banks=1)
    copy(load(X.tile((32, 32), (m, n)), by, edge=0, wait=True), box, wait=True)
    sync()
    copy(load(box.T, by, wait=True), Y.tile((32, 32), (n, m)), edge=0)
    assert_equals(Y, lambda n, m: X[m, n])
