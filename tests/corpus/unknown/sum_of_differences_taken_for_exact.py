# verdict: unknown
"""256 times (x + 1) - x is 256 over the reals; in f32 each of them is 0 or 2 from 2^24 on."""

from argus.language import (
    Tensor, add, all_to_each, assert_equals, block_id, copy, f32, first_lane, first_thread, kernel, load, shared, sm_90a, spread,
    sync, thread, warp, where,
)

THREADS, N = 64, 256


@kernel(target=sm_90a, threads=THREADS)
def compared(X: Tensor["R 256", f32], Y: Tensor["R", f32]):
    R, _ = X.shape
    (row,) = block_id((R,))
    by = spread((N,), threads=THREADS, vector=4)
    box = shared(f32, (THREADS // 32,))
    x = load(X[row].tile((N,), (0,)), by)
    sums = ((x + 1.0) - x).sum(0, within=thread)
    copy(sums.fold(0, add, within=warp), box, by=first_lane)
    sync()
    whole = load(box, all_to_each(THREADS)).fold(0, add, within=thread)
    copy(where(whole > 16.0, 1.0, 0.0), Y[row], by=first_thread, edge=0)
    assert_equals(Y, lambda _: 1)
