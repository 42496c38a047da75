# verdict: proved
"""A biased input times the sigmoid of a gate, in another spelling than the claim's; and a second, turned output."""

from argus.language import (
    Tensor, assert_equals, assume, bf16, block_id, ceil_div, copy, exp, f32, kernel, load, maximum, sm_90a, spread,
)


@kernel(target=sm_90a, threads=64)
def gated(
    X: Tensor["M N", bf16], G: Tensor["M N", bf16], B: Tensor["N", bf16], Y: Tensor["M N", bf16], Z: Tensor["N M", f32]
):
    M, N = X.shape
    assume(N % 8 == 0)
    m, n = block_id((ceil_div(M, 16), ceil_div(N, 64)))
    by = spread((16, 64), threads=64, vector=8)
    x = load(X.tile((16, 64), (m, n)), by, edge=0).to(f32)
    g = load(G.tile((16, 64), (m, n)), by, edge=0).to(f32)
    b = load(B.tile((64,), (n,)), by.axis(1), edge=0).to(f32)
    y = (x + b) / (1.0 + exp(-g))
    copy(y.to(bf16), Y.tile((16, 64), (m, n)), edge=0)
    copy(maximum(x, g), Z.T.tile((16, 64), (m, n)), edge=0)
    assert_equals(Y, lambda r, c: (X[r, c] + B[c]) * exp(G[r, c]) / (exp(G[r, c]) + 1))
    assert_equals(Z, lambda c, r: maximum(X[r, c], G[r, c]))
