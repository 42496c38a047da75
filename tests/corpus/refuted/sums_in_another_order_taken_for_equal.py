# verdict: refuted I39
"""Two sums of the same three numbers, each in its order, are compared: rounding makes them differ."""

from argus.language import Tensor, assert_equals, block_id, ceil_div, copy, f32, gfx942, kernel, load, spread, vmem, where


@kernel(target=gfx942, threads=64)
def compared(X: Tensor["M", f32], Z: Tensor["M", f32], Y: Tensor["M", f32]):
    (M,) = X.shape
    (m,) = block_id((ceil_div(M, 64),))
    x, z = (load(each.tile((64,), (m,)), spread((64,), threads=64, vector=1), edge=0) for each in (X, Z))
    vmem.wait(0)
    copy(where((x + z) + 1.0 == x + (z + 1.0), 1.0, 0.0), Y.tile((64,), (m,)), edge=0)
    assert_equals(Y, lambda _: 1)
