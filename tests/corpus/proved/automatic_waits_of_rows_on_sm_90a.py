# verdict: proved
"""RMS norm with a tail: one text for both targets, here sm_90a, whose loads and stores need no wait."""

from argus.language import (
    Tensor, assert_equals, assume, bf16, block_id, ceil_div, copy, f32, gfx942, kernel, load, loop, registers, rsqrt,
    sm_90a, spread, thread, total,
)


@kernel(target=(sm_90a, gfx942), warps=1, waits="automatic")
def rms_norm(X: Tensor["R N", bf16], W: Tensor["N", bf16], Y: Tensor["R N", bf16]):
    R, N = X.shape
    assume(N >= 1)
    (r,) = block_id((R,))
    by = spread((256,), vector=1)
    squares = registers(f32, by.partial(0))
    squares[:] = 0.0
    for i in loop(ceil_div(N, 256)):
        x = load(X[r].tile((256,), (i,)), by, edge=0).to(f32)
        squares[:] = squares + (x * x).sum(0, within=thread)
    scale = rsqrt(squares.sum(0) / N + 1e-6)
    for i in loop(ceil_div(N, 256)):
        x, w = load(X[r].tile((256,), (i,)), by, edge=0), load(W.tile((256,), (i,)), by, edge=0)
        copy((x.to(f32) * scale * w.to(f32)).to(bf16), Y[r].tile((256,), (i,)), edge=0)
    assert_equals(Y, lambda r, n: X[r, n] * rsqrt(total(lambda j: X[r, j] * X[r, j], over=N) / N + 1e-6) * W[n])
