# verdict: refuted I22
"""Tensors of 65,488 bytes, aligned to 128 bytes each: 65,792 bytes of LDS; gfx942 has 65,536."""

from argus.language import (
    Tensor, assert_written_once, block_id, ceil_div, copy, ds_read_b128, ds_write_b128, f32, gfx942, global_load,
    global_store, kernel, lds, registers, shared, spread, sync, tag, vmem,
)


@kernel(target=gfx942, threads=64)
def copied(X: Tensor["M 4", f32], Y: Tensor["M 4", f32]):
    """Through three tensors in turn."""
    tag(X, lambda m, n: dict(m=m, n=n))
    by = spread((64, 4), threads=64, vector=4)
    (m,) = block_id((ceil_div(X.shape[0], 64),))
    held = registers(f32, by)
    tiles = [shared(f32, (rows, 4)) for rows in (65, 65, 3963)]
    copy(X.tile((64, 4), (m, 0)), held, via=global_load, edge=0)
    vmem.wait(0)
    for tile in tiles:
        copy(held, tile.tile((64, 4), (0, 0)), via=ds_write_b128)
        lds.wait(0)
        sync()
        copy(tile.tile((64, 4), (0, 0)), held, via=ds_read_b128)
        lds.wait(0)
    copy(held, Y.tile((64, 4), (m, 0)), via=global_store, edge=0)
    assert_written_once(Y, lambda m, n: dict(m=m, n=n))
