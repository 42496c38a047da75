# verdict: rejected E222
"""Roles hand over what they have issued by barriers, so that no wait on a queue alone completes it."""

from argus.language import Ring, Tensor, block_id, bulk_copy, copy, f32, kernel, load, loop, role, shared, sm_90a, spread
from argus.language import warp, warpgroup


@kernel(target=sm_90a, threads=256, waits="automatic")
def specialised(X: Tensor["M 8 128", f32], Y: Tensor["M 8 128", f32]):
    (m,) = block_id((X.shape[0],))
    ring = Ring(2, x=shared(f32, (128,)))
    with role("load", warp(0).elected):
        for i in loop(8):
            with ring.fill() as slot:
                copy(X[m, i], slot.x, via=bulk_copy)
    with role("store", warpgroup(1)):
        for i in loop(8):
            slot = ring.wait()
            copy(load(slot.x, spread((128,), vector=1)), Y[m, i])
            ring.release()
