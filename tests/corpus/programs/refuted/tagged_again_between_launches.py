# verdict: refuted I4
"""A launch gives tags of its own to what an earlier one stored, and claims those that the elements had before."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, ceil_div, copy, f32, kernel, load, program, sm_90a, spread, tag,
    workspace,
)


@kernel(target=sm_90a, threads=32)
def first(X: Tensor["R N", f32], W: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(N % 4 == 0, R * N < 1 << 40)
    r, n = block_id((R, ceil_div(N, 128)))
    by = spread((128,), threads=32, vector=4)
    copy(load(X[r].tile((128,), (n,)), by, edge=0), W[r].tile((128,), (n,)), edge=0)


@kernel(target=sm_90a, threads=32)
def second(W: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = W.shape
    tag(W, lambda r, n: dict(r=n, n=r))
    assume(N % 4 == 0, R * N < 1 << 40)
    r, n = block_id((R, ceil_div(N, 128)))
    by = spread((128,), threads=32, vector=4)
    copy(load(W[r].tile((128,), (n,)), by, edge=0), Y[r].tile((128,), (n,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))


@program
def both(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    between = workspace(f32, X.shape)
    first(X, between)
    second(between, Y)
