# verdict: refuted I4
"""Rows times the rows from the other end, as a formula of the first launch says; the second claims each row alone."""

from argus.language import (
    Tensor, assert_equals, assert_written_once, assume, block_id, ceil_div, copy, f32, kernel, load, program, sm_90a,
    spread, tag, workspace,
)


@kernel(target=sm_90a, threads=32)
def products(X: Tensor["R N", f32], Z: Tensor["R N", f32], W: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    tag(Z, lambda r, n: dict(r=r, n=n))
    assume(N % 4 == 0, R * N < 1 << 40)
    r, n = block_id((R, ceil_div(N, 128)))
    by = spread((128,), threads=32, vector=4)
    x = load(X[r].tile((128,), (n,)), by, edge=0)
    z = load(Z[R - 1 - r].tile((128,), (n,)), by, edge=0)
    copy(z * x, W[r].tile((128,), (n,)), edge=0)
    assert_equals(W, lambda r, n: X[r, n] * Z[R - 1 - r, n])


@kernel(target=sm_90a, threads=32)
def moved(W: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = W.shape
    assume(N % 4 == 0, R * N < 1 << 40)
    r, n = block_id((R, ceil_div(N, 128)))
    w = load(W[r].tile((128,), (n,)), spread((128,), threads=32, vector=4), edge=0)
    copy(w, Y[r].tile((128,), (n,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))


@program
def both(X: Tensor["R N", f32], Z: Tensor["R N", f32], Y: Tensor["R N", f32]):
    between = workspace(f32, X.shape)
    products(X, Z, between)
    moved(between, Y)
