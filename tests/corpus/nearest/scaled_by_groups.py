# verdict: unknown
"""A scale for each 32 columns; nothing says that there are enough of them."""

from argus.language import (
    Tensor, assert_equals, bf16, block_id, ceil_div, copy, f32, gfx942, kernel, load, spread, vmem,
)


@kernel(target=gfx942, threads=256)
def scaled(X: Tensor["R N", bf16], G: Tensor["E", f32], Y: Tensor["R N", f32]):
    (R, N), (E,) = X.shape, G.shape
    r, i = block_id((R, ceil_div(N, 256)))
    by = spread((256,), threads=256, vector=1)
    x = load(X[r].tile((256,), (i,)), by, edge=0)
    g = load(G.gather((256,), lambda j: ((256 * i + j) // 32,), outside=0), by, edge=0)
    vmem.wait(0)
    copy(x.to(f32) * g, Y[r].tile((256,), (i,)), edge=0)
    assert_equals(Y, lambda r, n: X[r, n] * G[n // 32])
