# verdict: proved E404
"""The tiles are copied in reverse order, and the tags repeat in each tile: the claim holds, and says no more."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, ceil_div, copy, f32, gfx942, global_load, kernel, registers, spread,
    tag, vmem,
)


@kernel(target=gfx942, threads=64)
def reverse(X: Tensor["M N", f32], Y: Tensor["M N", f32]):
    (M, N) = X.shape
    assume(M % 16 == 0)
    tag(X, lambda m, n: dict(m=m % 16, n=n))
    m, n = block_id((ceil_div(M, 16), ceil_div(N, 16)))
    r = registers(f32, spread((16, 16), threads=64, vector=1))
    copy(X.tile((16, 16), (ceil_div(M, 16) - 1 - m, n)), r, via=global_load, edge=0)
    vmem.wait(0)
    copy(r, Y.tile((16, 16), (m, n)), edge=0)
    assert_written_once(Y, lambda m, n: dict(m=m % 16, n=n))
