# verdict: proved
"""Each thread holds four columns of four rows, column by column, and stores a row at a time: its registers lie apart."""

from argus.language import (
    TV, Layout, Tensor, assert_written_once, assume, block_id, ceil_div, copy, f32, gfx942, kernel, load, tag, vmem,
)


@kernel(target=gfx942, threads=64)
def move(X: Tensor["R 256", f32], Y: Tensor["R 256", f32]):
    R, _ = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(R % 4 == 0)
    (m,) = block_id((R // 4,))
    by = TV(Layout(64, 16), Layout((4, 4), (1, 4)), (4, 256))
    x = load(X.tile((4, 256), (m, 0)), by)
    vmem.wait(0)
    for row in range(4):
        copy(x.tile((1, 256), (row, 0)), Y.tile((1, 256), (4 * m + row, 0)))
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
