# verdict: proved
"""A workspace whose halves of 64 hold unlike values: what a launch leaves is a choice by the coordinate."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, program, sm_90a, spread, where, workspace,
)


@kernel(target=sm_90a, threads=32)
def halves(X: Tensor["R N", f32], W: Tensor["R N", f32]):
    R, N = X.shape
    assume(N % 4 == 0)
    r, n = block_id((R, ceil_div(N, 128)))
    by = spread((64,), threads=32, vector=2)
    copy(load(X[r].tile((64,), (2 * n,)), by, edge=0), W[r].tile((64,), (2 * n,)), edge=0)
    copy(load(X[r].tile((64,), (2 * n + 1,)), by, edge=0) * 2, W[r].tile((64,), (2 * n + 1,)), edge=0)


@kernel(target=sm_90a, threads=32)
def shifted(W: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = W.shape
    assume(N % 4 == 0)
    r, n = block_id((R, ceil_div(N, 128)))
    by = spread((128,), threads=32, vector=4)
    copy(load(W[r].tile((128,), (n,)), by, edge=0) + 1, Y[r].tile((128,), (n,)), edge=0)


@program
def both(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    between = workspace(f32, X.shape)
    halves(X, between)
    shifted(between, Y)
    assert_equals(Y, lambda r, n: where(n % 128 < 64, X[r, n], 2 * X[r, n]) + 1)
