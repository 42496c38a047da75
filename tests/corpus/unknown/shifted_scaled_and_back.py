# verdict: unknown
"""(v + 1) * s - s for the sum s of the row, which is v * s: what is added once comes off again."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, copy, f32, kernel, load, sm_90a, spread, tag, warp,
)


@kernel(target=sm_90a, threads=32)
def scaled(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(R <= 1 << 20, N <= 128)
    (row,) = block_id((R,))
    v = load(X[row].tile((128,), (0,)), spread((128,), threads=32, vector=1), edge=0)
    s = v.sum(0, within=warp)
    copy((v + 1.0) * s - s, Y[row].tile((128,), (0,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
