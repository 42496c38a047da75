# verdict: unknown
"""Each value is computed twice from the one before: a walk along all paths has no end."""

from argus.language import (
    TV, Layout, Tensor, assert_written_once, block_id, copy, exp, f32, kernel, load, sm_90a, tag, warp,
)


@kernel(target=sm_90a, threads=32)
def powers(X: Tensor["R 128", f32], Y: Tensor["R 128", f32]):
    R, _ = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    (i,) = block_id((R,))
    y = load(X.tile((1, 128), (i, 0)), TV(Layout((32,), (1,)), Layout((4,), (32,)), (1, 128)))
    for _ in range(60):
        y = y * y
    copy(y + exp(y).min(1, within=warp), Y.tile((1, 128), (i, 0)))
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
