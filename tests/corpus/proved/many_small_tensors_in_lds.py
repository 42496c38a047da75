# verdict: proved
"""56 tensors of 1,040 bytes: aligned to 128 bytes each they fit LDS, aligned to 1,024 they would not."""

from argus.language import (
    Tensor, assert_written_once, block_id, ceil_div, copy, ds_read_b128, ds_write_b128, f32, gfx942, global_load,
    global_store, kernel, lds, registers, shared, spread, sync, tag, vmem,
)


@kernel(target=gfx942, threads=64)
def copied(X: Tensor["M 4", f32], Y: Tensor["M 4", f32]):
    """Through many tensors in turn."""
    tag(X, lambda m, n: dict(m=m, n=n))
    by = spread((64, 4), threads=64, vector=4)
    (m,) = block_id((ceil_div(X.shape[0], 64),))
    held = registers(f32, by)
    tiles = [shared(f32, (65, 4)) for _ in range(56)]
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
