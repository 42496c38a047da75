# verdict: refuted I4
"""Two launches load X and tag it differently: what the first one copied keeps the tags of that launch."""

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
def second(X: Tensor["R N", f32], W: Tensor["R N", f32], Y: Tensor["R N", f32], Z: Tensor["R N", f32]):
    R, N = W.shape
    tag(X, lambda r, n: dict(r=n, n=r))
    assume(N % 4 == 0, R * N < 1 << 40)
    r, n = block_id((R, ceil_div(N, 128)))
    by = spread((128,), threads=32, vector=4)
    copy(load(W[r].tile((128,), (n,)), by, edge=0), Y[r].tile((128,), (n,)), edge=0)
    copy(load(X[r].tile((128,), (n,)), by, edge=0), Z[r].tile((128,), (n,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=n, n=r))
    assert_written_once(Z, lambda r, n: dict(r=n, n=r))


@program
def both(X: Tensor["R N", f32], Y: Tensor["R N", f32], Z: Tensor["R N", f32]):
    between = workspace(f32, X.shape)
    first(X, between)
    second(X, between, Y, Z)
