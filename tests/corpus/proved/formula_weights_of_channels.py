# verdict: proved
"""Each element times the weight of its channel, which is a quotient of its column by a size."""

from argus.language import (
    Int, Tensor, assert_equals, assume, block_id, ceil_div, copy, f32, kernel, load, sm_90a, spread,
)

THREADS = 32


@kernel(target=sm_90a, threads=THREADS)
def weights_of_channels(X: Tensor["R N", f32], W: Tensor["G K", f32], Y: Tensor["R N", f32], *, S: Int):
    (R, N), (G, K) = X.shape, W.shape
    assume(G >= 1)
    assume(S >= 1)
    assume(N == K * S)
    r, i = block_id((R, ceil_div(N, THREADS)))
    by = spread((1, THREADS), threads=THREADS, vector=1)
    weights = W.gather((1, THREADS), lambda _, n: (r % G, (THREADS * i + n) // S), outside=0)
    x = load(X.tile((1, THREADS), (r, i)), by, edge=0)
    copy(x * load(weights, by, edge=0), Y.tile((1, THREADS), (r, i)), edge=0)
    assert_equals(Y, lambda r, n: X[r, n] * W[r % G, n // S])
