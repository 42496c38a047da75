# verdict: proved
"""A window of three by three that is spelled out, without the rows and columns outside, is that over both axes."""

from argus.language import Tensor, assert_equals, assume, block_id, copy, f32, kernel, load, sm_90a, spread, total, where

BY = spread((1, 64), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def weighted(X: Tensor["H W", f32], F: Tensor["P Q", f32], Y: Tensor["H W", f32]):
    H, W = X.shape
    assume(F.shape[0] == 3, F.shape[1] == 3, W % 64 == 0)
    h, w = block_id((H, W // 64))
    sums = None
    for p in range(3):
        for q in range(3):
            x = load(X.gather((1, 64), lambda i, j: (h + i + p - 1, 64 * w + j + q - 1)), BY, edge=0)
            f = load(F.gather((1, 64), lambda i, j: (p, q)), BY)
            sums = x * f if sums is None else sums + x * f
    copy(sums, Y.tile((1, 64), (h, w)))
    assert_equals(
        Y,
        lambda y, x: total(
            lambda p: total(
                lambda q: where(
                    (y + p >= 1) & (y + p <= H) & (x + q >= 1) & (x + q <= W), X[y + p - 1, x + q - 1] * F[p, q], 0
                ),
                over=3,
            ),
            over=3,
        ),
    )
