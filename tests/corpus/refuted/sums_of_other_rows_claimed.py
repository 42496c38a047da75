# verdict: refuted I25
"""Prefix sums staged through shared memory come back shifted by one row; the assertion claims the row before."""

from math import inf

from argus.language import (
    TV, Layout, Tensor, assert_covers, assume, block_id, copy, exp, f32, gfx942, kernel, lds, load, minimum, first_lane, shared, sync, tag, vmem,
    warp, where,
)


@kernel(target=gfx942, threads=64)
def rows(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(R % 4 == 0, N % 256 == 0, N >= 256, R >= 4, R * N < 1 << 30)
    (i,) = block_id((R // 4,))
    by = TV(Layout((64,), (16,)), Layout((4, 4), (1, 4)), (4, 256))
    x = load(X.tile((4, 256), (i, 0)), by, edge=-inf)
    vmem.wait(0)
    r, n = x.index
    seen = where(n <= 4 * i + r, x, -inf)
    total = exp(seen - seen.max(1, within=warp)).sum(1, within=warp)
    assert_covers(total.tag.n, 0, minimum(256, 4 * i + total.index[0] + 1))
    box = shared(f32, (4,))
    copy(total, box, by=first_lane)
    lds.wait(0)
    sync()
    two = load(box.tile((2,), (1,)), TV(Layout(64, 0), Layout(2, 1), (2,)))
    lds.wait(0)
    assert_covers(two.tag.n, 0, minimum(256, 4 * i + two.index[0] + 1))
