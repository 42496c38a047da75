# verdict: refuted I4
"""After cutlass#3497: the grid counts tiles without row padding, the block-to-tile map with it: tiles are skipped."""

from argus.language import (
    Tensor, assert_written_once, bf16, block_id, ceil_div, copy, gfx942, global_load, global_store, kernel, registers,
    spread, tag, vmem,
)


@kernel(target=gfx942, threads=64)
def move(X: Tensor["M 192", bf16], Y: Tensor["M 192", bf16]):
    M, by = X.shape[0], spread((8, 64), threads=64, vector=8)
    tag(X, lambda m, d: dict(m=m, d=d))
    wide = 3
    (i,) = block_id((ceil_div(M, 8) * wide,))
    m, n = i // 4, i % 4  # the map assumes rows of four tiles; there are three
    rows = registers(bf16, by)
    copy(X.tile((8, 64), (m, n)), rows, via=global_load, edge=0)
    vmem.wait(0)
    copy(rows, Y.tile((8, 64), (m, n)), via=global_store, edge=0)
    assert_written_once(Y, lambda m, d: dict(m=m, d=d))
