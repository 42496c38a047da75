from math import inf

from argus.language import (
    TV, Layout, Tensor, assert_equals, assume, block_id, ceil_div, copy, exp, f32, greatest, kernel, load, sm_90a, total,
)

WIDTH, WARPS = 1024, 4


@kernel(target=sm_90a, threads=32 * WARPS)
def softmax(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    assume(N % 4 == 0, N <= WIDTH)
    (block,) = block_id((ceil_div(R, WARPS),))
    by = TV(Layout((32, WARPS), (4 * WARPS, 1)), Layout((4, WIDTH // 128), (WARPS, 128 * WARPS)), (WARPS, WIDTH))
    v = load(X.tile((WARPS, WIDTH), (block, 0)), by, edge=-inf)
    top = v.max(1)
    w = exp(v - top)
    scale = 1.0 / w.sum(1)
    copy(w * scale, Y.tile((WARPS, WIDTH), (block, 0)), edge=0)
    assert_equals(
        Y,
        lambda r, n: exp(X[r, n] - greatest(lambda j: X[r, j], over=N))
        / total(lambda j: exp(X[r, j] - greatest(lambda k: X[r, k], over=N)), over=N),
    )
