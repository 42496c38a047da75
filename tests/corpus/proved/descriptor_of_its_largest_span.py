# verdict: proved
"""Tensors of 4,294,967,280 bytes, the most that a buffer descriptor spans."""

from argus.language import (
    Tensor, assert_written_once, block_id, buffer_load, buffer_store, ceil_div, copy, f32, gfx942, kernel, registers,
    spread, tag, vmem,
)


@kernel(target=gfx942, threads=256)
def copied(X: Tensor["3 357913940", f32], Y: Tensor["3 357913940", f32]):
    tag(X, lambda m, n: dict(m=m, n=n))
    by = spread((1, 1024), threads=256, vector=4)
    n, m = block_id((ceil_div(357913940, 1024), 3))
    held = registers(f32, by)
    copy(X.tile((1, 1024), (m, n)), held, via=buffer_load, edge=0)
    vmem.wait(0)
    copy(held, Y.tile((1, 1024), (m, n)), via=buffer_store, edge=0)
    assert_written_once(Y, lambda m, n: dict(m=m, n=n))
