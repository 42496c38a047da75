# verdict: refuted I3
"""Rows are copied into a wider, zero-padded tensor; the claim on their sum expects data in the padding columns too."""

from argus.language import (
    Tensor, assert_covers, assume, block_id, ceil_div, copy, f32, gfx942, global_load,
    kernel, load, loop, program, registers, spread, tag, vmem, warp,
)


@kernel(target=gfx942, threads=64)
def widen(X: Tensor["R N", f32], W: Tensor["R M", f32]):
    (R, N), (_, M) = X.shape, W.shape
    tag(X, lambda r, n: dict(r=r, n=n))
    assume(N % 4 == 0, M % 4 == 0, N <= M, R * M < 1 << 40)
    r, n = block_id((R, ceil_div(M, 256)))
    x = load(X[r].tile((256,), (n,)), spread((256,), threads=64, vector=4), via=global_load, edge=0)
    vmem.wait(0)
    copy(x, W[r].tile((256,), (n,)), edge=0)


@kernel(target=gfx942, threads=64)
def total(W: Tensor["R M", f32], S: Tensor["R", f32]):
    R, M = W.shape
    assume(M % 4 == 0, M >= 4)
    tag(W, lambda r, n: dict(r=r, n=n))
    (r,) = block_id((R,))
    by = spread((256,), threads=64, vector=4)
    whole = registers(f32, by.partial(0))
    whole[:] = 0.0
    for n in loop(ceil_div(M, 256)):
        w = load(W[r].tile((256,), (n,)), by, via=global_load, edge=0)
        vmem.wait(0)
        whole += w.sum(0, within=warp)
    assert_covers(whole.tag.n, 0, M)


@program
def sums(X: Tensor["R N", f32], W: Tensor["R M", f32], S: Tensor["R", f32]):
    widen(X, W)
    total(W, S)
