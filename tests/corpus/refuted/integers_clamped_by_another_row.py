# verdict: refuted I2
"""Integers less a number per row, then clamped: the numbers are those of the next rows."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, ceil_div, copy, gfx942, i32, kernel, load, maximum, minimum, spread,
    tag, vmem, where,
)


@kernel(target=gfx942, threads=64)
def clamped(X: Tensor["R N", i32], D: Tensor["R", i32], Y: Tensor["R N", i32]):
    R, N = X.shape
    assume(N % 4 == 0)
    tag(X, lambda r, n: dict(r=r, n=n))
    tag(D, lambda r: dict(r=r))
    by = spread((16, 32), threads=64, vector=4)
    r, n = block_id((ceil_div(R, 16), ceil_div(N, 32)))
    x = load(X.tile((16, 32), (r, n)), by, edge=0)
    d = load(D.tile((16,), (r + 1,)), by.axis(0), edge=0)
    vmem.wait(0)
    moved = x - d
    copy(where(moved == 7, -moved, minimum(maximum(moved, -100), 100)), Y.tile((16, 32), (r, n)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
