# verdict: proved
"""An inclusive scan of a warp's elements by doubling shifts."""

from argus.language import (
    Tensor, assert_covers, assert_written_once, assume, block_id, copy, f32, kernel, load, sm_90a, spread, tag,
)


@kernel(target=sm_90a, threads=32)
def scan(X: Tensor["R 32", f32], Y: Tensor["R 32", f32]):
    (R, _) = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(R <= 1 << 20)
    (row,) = block_id((R,))
    v = load(X[row], spread((32,), threads=32, vector=1))
    for distance in (1, 2, 4, 8, 16):
        v = v + v.shift(0, distance, fill=0.0)
    assert_covers(v.tag.n, 0, v.index[0] + 1)
    copy(v, Y[row])
    assert_written_once(Y, lambda r, n: dict(r=r))
