# verdict: refuted I34
"""Half of a workspace is claimed to be what it held before: a formula, but not that all of it is written."""

from argus.language import Tensor, assert_equals, assume, before, block_id, ceil_div, copy, f32, kernel, load, program, sm_90a, spread, where, workspace

BY = spread((32,), threads=32, vector=1)

@kernel(target=sm_90a, threads=32)
def half(X: Tensor["R 64", f32], W: Tensor["R 64", f32]):
    (R, _) = X.shape
    (r,) = block_id((R,))
    copy(load(X[r].tile((32,), (0,)), BY), W[r].tile((32,), (0,)))
    assert_equals(W, lambda r, n: where(n < 32, X[r, n], before(W)[r, n]))

@kernel(target=sm_90a, threads=32)
def move(W: Tensor["R 64", f32], Y: Tensor["R 64", f32]):
    (R, _) = W.shape
    r, h = block_id((R, 2))
    copy(load(W[r].tile((32,), (h,)), BY), Y[r].tile((32,), (h,)))
    assert_equals(Y, lambda r, n: W[r, n])

@program
def both(X: Tensor["R 64", f32], Y: Tensor["R 64", f32]):
    W = workspace(f32, X.shape)
    half(X, W)
    move(W, Y)
