# verdict: unknown
"""Two more than each integer, which may wrap around."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, gfx942, i32, kernel, load, scalar, spread, vmem,
)


@kernel(target=gfx942, threads=64)
def counted(X: Tensor["N", i32], Y: Tensor["N", i32]):
    (N,) = X.shape
    (i,) = block_id((ceil_div(N, 64),))
    x = load(X.tile((64,), (i,)), spread((64,), threads=64, vector=1), edge=0)
    vmem.wait(0)
    copy(x + 2, Y.tile((64,), (i,)), edge=0)
    assert_equals(Y, lambda n: scalar(X[n]) + 2)
