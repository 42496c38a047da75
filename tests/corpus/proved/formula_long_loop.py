# verdict: proved
"""A loop of 60 iterations stays a loop, as its statements are too many to be spelled out."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, copy, f32, kernel, load, loop, registers, sm_90a, spread, total,
)

BY = spread((64,), threads=64, vector=1)


@kernel(target=sm_90a, threads=64)
def summed(X: Tensor["R M", f32], Y: Tensor["M", f32]):
    R, M = X.shape
    assume(R == 480, M % 64 == 0)
    (m,) = block_id((M // 64,))
    sums = registers(f32, BY)
    sums[:] = 0.0
    for i in loop(60):
        for j in range(8):
            sums[:] = sums + load(X[8 * i + j].tile((64,), (m,)), BY)
    copy(sums, Y.tile((64,), (m,)))
    assert_equals(Y, lambda r: total(lambda j: X[j, r], over=480))
