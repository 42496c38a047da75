# verdict: unknown
"""Even columns are of one tensor and odd ones of another, as a formula says; tags, claimed by the next launch, do not."""

from argus.language import (
    Tensor, assert_equals, assert_written_once, assume, block_id, ceil_div, copy, eq, f32, kernel, load, program, sm_90a, spread, tag,
    where, workspace,
)


@kernel(target=sm_90a, threads=32)
def first(X: Tensor["R N", f32], Z: Tensor["R N", f32], W: Tensor["R N", f32]):
    R, N = X.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    tag(Z, lambda r, n: dict(r=r, n=n))
    assume(N % 4 == 0, R * N < 1 << 40)
    r, n = block_id((R, ceil_div(N, 128)))
    by = spread((128,), threads=32, vector=4)
    x = load(X[r].tile((128,), (n,)), by, edge=0)
    z = load(Z[r].tile((128,), (n,)), by, edge=0)
    (i,) = x.index
    copy(where(eq(i % 2, 0), x, z), W[r].tile((128,), (n,)), edge=0)
    assert_equals(W, lambda r, n: where(n % 2 < 1, X[r, n], Z[r, n]))


@kernel(target=sm_90a, threads=32)
def second(W: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = W.shape
    assume(N % 4 == 0, R * N < 1 << 40)
    r, n = block_id((R, ceil_div(N, 128)))
    by = spread((128,), threads=32, vector=4)
    copy(load(W[r].tile((128,), (n,)), by, edge=0), Y[r].tile((128,), (n,)), edge=0)
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))


@program
def both(X: Tensor["R N", f32], Z: Tensor["R N", f32], Y: Tensor["R N", f32]):
    between = workspace(f32, X.shape)
    first(X, Z, between)
    second(between, Y)
