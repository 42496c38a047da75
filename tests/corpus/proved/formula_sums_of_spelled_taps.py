# verdict: proved
"""Two by twenty tensors that are added one by one, then summed up by a warp: a sum over both numbers and columns."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, copy, f32, first_lane, kernel, load, registers, sm_90a, spread, total,
)

BY = spread((128,), threads=32, vector=4)
TAPS = [(p, q) for p in range(2) for q in range(20)]


@kernel(target=sm_90a, threads=32)
def summed(X: Tensor["P Q R N", f32], Y: Tensor["R", f32]):
    P, Q, R, N = X.shape
    assume(P == 2, Q == 20, N == 128)
    (r,) = block_id((R,))
    sums = registers(f32, BY)
    sums[:] = 0.0
    for p, q in TAPS:
        sums[:] = sums + load(X[p, q, r].tile((128,), (0,)), BY)
    copy(sums.sum(0), Y[r], by=first_lane, edge=0)
    assert_equals(Y, lambda i: total(lambda p, q, j: X[p, q, i, j], over=(P, Q, N)))
