# verdict: unknown
"""Dot products of the rows of two tensors; nothing says that both have as many."""

from argus.language import (
    Tensor, assert_equals, block_id, ceil_div, copy, f32, kernel, load, loop, registers, sm_90a, spread, thread,
    total,
)


@kernel(target=sm_90a, threads=32)
def dots(X: Tensor["R N", f32], Z: Tensor["S N", f32], Y: Tensor["R", f32]):
    (R, N), (S, _) = X.shape, Z.shape
    (r,) = block_id((R,))
    by = spread((256,), threads=32, vector=1)
    part = registers(f32, by.partial(0))
    part[:] = 0.0
    for i in loop(ceil_div(N, 256)):
        x = load(X[r].tile((256,), (i,)), by, edge=0)
        z = load(Z.gather((256,), lambda j: (r, 256 * i + j), outside=0), by, edge=0)
        part[:] = part + (x * z).sum(0, within=thread)
    copy(part.sum(0), Y[r])
    assert_equals(Y, lambda r: total(lambda j: X[r, j] * Z[r, j], over=N))
