# verdict: refuted I39
"""Norms of rows to which each part adds the sum of the first one."""

from argus.language import (
    Tensor, add, assert_equals, assume, block_id, ceil_div, copy, f32, first_lane, kernel, load, loop, program,
    registers, replicated, sm_90a, span, spread, sqrt, thread, total, workspace, zeros,
)

CHUNK, PARTS = 128, 4


@kernel(target=sm_90a, threads=32)
def zero(T: Tensor["R", f32]):
    (R,) = T.shape
    (r,) = block_id((R,))
    copy(zeros(f32, replicated(32)), T[r], by=first_lane, edge=0)


@kernel(target=sm_90a, threads=32)
def squares(X: Tensor["R N", f32], T: Tensor["R", f32]):
    R, N = X.shape
    assume(N % 4 == 0)
    r, p = block_id((R, PARTS))
    by = spread((CHUNK,), threads=32, vector=4)
    low, high = span(p - p, PARTS, ceil_div(N, CHUNK))
    sums = registers(f32, by.partial(0))
    sums[:] = 0.0
    for i in loop(low, high):
        x = load(X[r].tile((CHUNK,), (i,)), by, edge=0)
        sums[:] = sums + (x * x).sum(0, within=thread)
    copy(sums.sum(0), T[r], by=first_lane, edge=0, combine=add)


@kernel(target=sm_90a, threads=32)
def roots(T: Tensor["R", f32], Y: Tensor["R", f32]):
    (R,) = T.shape
    (r,) = block_id((R,))
    copy(sqrt(load(T[r], replicated(32))), Y[r], by=first_lane, edge=0)


@program
def norms(X: Tensor["R N", f32], Y: Tensor["R", f32]):
    R, N = X.shape
    sums = workspace(f32, (R,))
    zero(sums)
    squares(X, sums)
    roots(sums, Y)
    assert_equals(Y, lambda r: sqrt(total(lambda j: X[r, j] * X[r, j], over=N)))
