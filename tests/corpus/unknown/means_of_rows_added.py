# verdict: unknown
"""The means of four rows are subtracted from each element: their sum is no multiple of one row's mean."""

from argus.language import (
    TV, Layout, Tensor, assert_covers, assert_written_once, assume, block_id, copy, f32, kernel, load, ones, sm_90a, tag,
    thread, warp,
)


@kernel(target=sm_90a, threads=32)
def centred(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(R % 4 == 0, N == 128, R >= 4, R * N < 1 << 30)
    (i,) = block_id((R // 4,))
    by = TV(Layout((32,), (16,)), Layout((4, 4), (1, 4)), (4, 128))
    x = load(X.tile((4, 128), (i, 0)), by)
    total = x.sum(1, within=warp)
    assert_covers(total.tag.n, 0, N)
    mean = total / ones(f32, by).sum(1, within=warp, where=x.index[1] < N)
    assert_covers(x.sum(0, within=thread).tag.r, 4 * i, 4 * i + 4)
    copy(x - mean.sum(0, within=thread), Y.tile((4, 128), (i, 0)))
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
