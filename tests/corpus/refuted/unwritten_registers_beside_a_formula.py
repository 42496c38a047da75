# verdict: refuted I38
"""Uninitialised registers are stored to shared memory, where no output depends on them: its formula is right."""

from argus.language import Tensor, assert_equals, assume, block_id, copy, f32, kernel, load, registers, shared, sm_90a, spread


@kernel(target=sm_90a, threads=32)
def doubled(X: Tensor["R 32", f32], Y: Tensor["R 32", f32]):
    R, _ = X.shape
    assume(R >= 1, R < 1 << 20)
    (i,) = block_id((R,))
    by = spread((32,), threads=32, vector=1)
    spare = registers(f32, by)
    box = shared(f32, (32,))
    copy(spare, box)
    x = load(X[i], by)
    copy(x + x, Y[i])
    assert_equals(Y, lambda r, n: X[r, n] + X[r, n])
