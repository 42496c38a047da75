# verdict: proved
"""The greatest element of windows of three axes, in another order of the axes than the claim has."""

from argus.language import (
    TV, Layout, Tensor, assert_equals, block_id, ceil_div, copy, f32, greatest, kernel, ld_global_b32, load, maximum,
    sm_90a, thread,
)

BY = TV(Layout((64,), (1,)), Layout((2, 2, 2), (64, 128, 256)), (64, 2, 2, 2))


@kernel(target=sm_90a, threads=64)
def pooled(X: Tensor["M 2 2 2", f32], Y: Tensor["M", f32]):
    M = X.shape[0]
    (m,) = block_id((ceil_div(M, 64),))
    x = load(X.tile((64, 2, 2, 2), (m, 0, 0, 0)), BY, edge=0, via=ld_global_b32)
    for axis in (2, 1, 1):
        x = x.fold(axis, maximum, within=thread)
    copy(x, Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda r: greatest(lambda a, b, c: X[r, a, b, c], over=(2, 2, 2)))
