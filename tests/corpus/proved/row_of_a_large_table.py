# verdict: proved
"""Block b copies row T[4096 * b + 7] of X, whose offset exceeds 32 bits from row 524,288 on; so may the index into T."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, copy, f32, global_load, i32, gfx942, kernel, load, promise, scalar,
    spread, tag, vmem,
)


@kernel(target=gfx942, threads=256)
def gathered(X: Tensor["R 4096", f32], T: Tensor["S", i32], Y: Tensor["B 4096", f32]):
    (R, _), (S,), (B, _) = X.shape, T.shape, Y.shape
    promise(T, lambda row: (row >= 0) & (row < R))
    assume(4096 * B <= S)
    tag(X, lambda r, n: dict(r=r, n=n))
    b, n = block_id((B, 4))
    row = scalar(T[4096 * b + 7])
    held = load(X[row].tile((1024,), (n,)), spread((1024,), threads=256, vector=4), via=global_load)
    vmem.wait(0)
    copy(held, Y[b].tile((1024,), (n,)))
    assert_written_once(Y, lambda b, n: dict(r=T[4096 * b + 7], n=n))
