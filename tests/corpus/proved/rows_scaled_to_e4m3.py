# verdict: proved
"""Rows divided by a scale per row and rounded to e4m3; a second output holds what they round to, in f32."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, ceil_div, copy, e4m3, f32, kernel, load, sm_90a, spread, tag,
)


@kernel(target=sm_90a, threads=128)
def rounded(X: Tensor["R N", f32], S: Tensor["R", f32], Y: Tensor["R N", e4m3], Z: Tensor["R N", f32]):
    R, N = X.shape
    assume(N % 16 == 0)
    tag(X, lambda r, n: dict(r=r, n=n))
    tag(S, lambda r: dict(r=r))
    by = spread((32, 64), threads=128, vector=16)
    r, n = block_id((ceil_div(R, 32), ceil_div(N, 64)))
    x = load(X.tile((32, 64), (r, n)), by, edge=0)
    s = load(S.tile((32,), (r,)), by.axis(0), edge=1)
    y = (x / s).to(e4m3)
    copy(y, Y.tile((32, 64), (r, n)), edge=0)
    copy(y.to(f32), Z.tile((32, 64), (r, n)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
    assert_written_once(Z, lambda r, n: dict(r=r, n=n))
