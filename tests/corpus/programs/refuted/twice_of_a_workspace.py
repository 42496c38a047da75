# verdict: refuted I39
"""A launch claims twice what it reads from a workspace, and stores it once."""

from argus.language import (
    Tensor, assert_equals, block_id, copy, f32, first_lane, kernel, load, program, replicated, sm_90a, workspace,
)


@kernel(target=sm_90a, threads=32)
def squared(X: Tensor["R", f32], T: Tensor["R", f32]):
    (R,) = X.shape
    (r,) = block_id((R,))
    x = load(X[r], replicated(32))
    copy(x * x, T[r], by=first_lane, edge=0)


@kernel(target=sm_90a, threads=32)
def kept(T: Tensor["R", f32], Y: Tensor["R", f32]):
    (R,) = T.shape
    (r,) = block_id((R,))
    copy(load(T[r], replicated(32)), Y[r], by=first_lane, edge=0)
    assert_equals(Y, lambda r: 2 * T[r])


@program
def squares(X: Tensor["R", f32], Y: Tensor["R", f32]):
    T = workspace(f32, X.shape)
    squared(X, T)
    kept(T, Y)
