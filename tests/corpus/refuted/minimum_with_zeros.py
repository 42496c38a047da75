# verdict: refuted I3
"""Each element minus its row's minimum; columns beyond the row are 0, which the minimum takes for elements."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, block_id, copy, f32, kernel, load, sm_90a, spread, tag, warp,
)


@kernel(target=sm_90a, threads=32)
def risen(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(R <= 1 << 20, N % 4 == 0, N <= 128)
    (row,) = block_id((R,))
    v = load(X[row].tile((128,), (0,)), spread((128,), threads=32, vector=1), edge=0)
    least = v.min(0, within=warp)
    assert_covers(least.tag.n, 0, N)
    copy(v - least, Y[row].tile((128,), (0,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
