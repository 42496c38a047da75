# verdict: proved
"""A launch stores a row with its columns permuted within 16; the next one multiplies in that order, and sums."""

from argus.language import (
    Int, Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, first_lane, kernel, load, loop, program, registers, sm_90a,
    spread, total, workspace,
)

SIZE = 512


def column_at(place: Int):
    """The column at a place: at 4 i + 2 j + k of 16 places, with j and k below 2, column 8 j + 2 i + k."""
    inside = place % 16
    return place // 16 * 16 + inside // 2 % 2 * 8 + inside // 4 * 2 + inside % 2


@kernel(target=sm_90a, threads=32)
def permuted(X: Tensor["R N", f32], W: Tensor["R P", f32]):
    (R, N), P = X.shape, W.shape[1]
    assume(N % 4 == 0, P >= N, P % SIZE == 0)
    r, n = block_id((R, P // SIZE))
    by = spread((SIZE,), threads=32, vector=4)
    columns = X[r].gather((SIZE,), lambda p: (column_at(n * SIZE + p),))
    copy(load(columns, by, edge=0), W[r].tile((SIZE,), (n,)))


@kernel(target=sm_90a, threads=32)
def product(W: Tensor["R P", f32], V: Tensor["N", f32], Y: Tensor["R", f32]):
    (R, P), N = W.shape, V.shape[0]
    assume(N % 4 == 0, P >= N, P % SIZE == 0)
    (r,) = block_id((R,))
    by = spread((SIZE,), threads=32, vector=16)
    sums = registers(f32, by)
    sums[:] = 0.0
    for n in loop(ceil_div(N, SIZE)):
        v = load(V.tile((SIZE,), (n,)), by, edge=0)
        w = load(W[r].tile((SIZE,), (n,)), by, edge=0)
        sums[:] = sums + v.gather(by, lambda p: (column_at(p),)) * w
    copy(sums.sum(0), Y[r], by=first_lane, edge=0)


@program
def weighed(X: Tensor["R N", f32], V: Tensor["N", f32], Y: Tensor["R", f32]):
    R, N = X.shape
    W = workspace(f32, (R, ceil_div(N, SIZE) * SIZE))
    permuted(X, W)
    product(W, V, Y)
    assert_equals(Y, lambda r: total(lambda j: X[r, j] * V[j], over=N))
