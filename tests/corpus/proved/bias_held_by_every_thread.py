# verdict: proved
"""Every thread holds all 64 biases and adds the one of its column: which register that is depends on the thread."""

from argus.language import (
    Tensor, all_to_each, assert_written_once, block_id, copy, f32, gfx942, kernel, load, spread, tag, vmem,
)


@kernel(target=gfx942, threads=64)
def added(X: Tensor["R 64", f32], B: Tensor["64", f32], Y: Tensor["R 64", f32]):
    R, _ = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    tag(B, lambda n: dict(n=n))
    (row,) = block_id((R,))
    x = load(X[row], spread((64,), threads=64, vector=1))
    biases = load(B, all_to_each(64))
    vmem.wait(0)
    copy(x + biases, Y[row])
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
