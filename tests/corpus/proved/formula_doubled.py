# verdict: proved
"""Elements times two on gfx942, where a load is waited for by hand, and a formula alone is claimed."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, f32, gfx942, global_load, kernel, registers, spread, vmem,
)


@kernel(target=gfx942, threads=64)
def double(X: Tensor["R", f32], Y: Tensor["R", f32]):
    (R,) = X.shape
    (block,) = block_id((ceil_div(R, 256),))
    by = spread((256,), threads=64, vector=1)
    x = registers(f32, by)
    copy(X.tile((256,), (block,)), x, via=global_load, edge=0)
    vmem.wait(0)
    copy(x * 2, Y.tile((256,), (block,)), edge=0)
    assert_equals(Y, lambda r: 2 * X[r])
