# verdict: refuted I4
"""After the usual chiplet (XCD) remapping: blocks are renumbered by eighths of the grid, which need not be whole."""

from argus.language import (
    Tensor, assert_written_once, bf16, block_id, ceil_div, copy, gfx942, global_load, global_store, kernel, registers,
    spread, tag, vmem,
)


@kernel(target=gfx942, threads=64)
def move(X: Tensor["M 64", bf16], Y: Tensor["M 64", bf16]):
    (M, _), by = X.shape, spread((8, 64), threads=64, vector=8)
    tag(X, lambda m, d: dict(m=m, d=d))
    tiles = ceil_div(M, 8)
    (i,) = block_id((tiles,))
    m = i % 8 * (tiles // 8) + i // 8
    rows = registers(bf16, by)
    copy(X.tile((8, 64), (m, 0)), rows, via=global_load, edge=0)
    vmem.wait(0)
    copy(rows, Y.tile((8, 64), (m, 0)), via=global_store, edge=0)
    assert_written_once(Y, lambda m, d: dict(m=m, d=d))
