from math import inf

from argus.language import (
    TV, Layout, Tensor, assert_equals, assume, block_id, ceil_div, copy, cp_async, exp, f32, greatest, kernel, load, loop,
    shared, sm_90a, sync, total, when,
)

WIDTH, WARPS, STAGES, BLOCKS = 1024, 4, 2, 6 * 132


@kernel(target=sm_90a, threads=32 * WARPS)
def softmax(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    assume(N % 4 == 0, N <= WIDTH, R <= 1 << 24)
    by = TV(Layout((32, WARPS), (4 * WARPS, 1)), Layout((4, WIDTH // 128), (WARPS, 128 * WARPS)), (WARPS, WIDTH))
    staged = shared(f32, (STAGES, WARPS, WIDTH))
    (first,) = block_id((BLOCKS,))
    count = ceil_div(ceil_div(R, WARPS) - first, BLOCKS)

    def fetch(i):
        with when(i < count):
            source = X.tile((WARPS, WIDTH), (first + i * BLOCKS, 0))
            copy(source, staged[i % STAGES], via=cp_async, by=by, edge=-inf)
        cp_async.commit()

    for i in range(STAGES - 1):
        fetch(i)
    for i in loop(count):
        cp_async.wait(STAGES - 2)
        sync()
        v = load(staged[i % STAGES], by)
        fetch(i + STAGES - 1)
        top = v.max(1)
        w = exp(v - top)
        scale = 1.0 / w.sum(1)
        copy(w * scale, Y.tile((WARPS, WIDTH), (first + i * BLOCKS, 0)), edge=0)
    assert_equals(
        Y,
        lambda r, n: exp(X[r, n] - greatest(lambda j: X[r, j], over=N))
        / total(lambda j: exp(X[r, j] - greatest(lambda k: X[r, k], over=N)), over=N),
    )
