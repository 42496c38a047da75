# verdict: refuted I39
"""A transposed convolution with steps of two: the taps of the other class."""

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, elements, eq, f32, kernel, load, sm_90a, spread, total,
    where, zeros,
)


@kernel(target=sm_90a, threads=128)
def spread_out(X: Tensor["N", f32], F: Tensor["3", f32], Y: Tensor["M", f32]):
    (M,), (N,) = Y.shape, X.shape
    assume(M >= 1)
    (m,) = block_id((ceil_div(M, 128),))
    by = spread((128,), threads=128, vector=1)
    sums = zeros(f32, by)
    for e in range(2):
        x = load(X.gather((M,), lambda y: (y // 2 - e,), outside=0).tile((128,), (m,)), by, edge=0)
        f = load(F.gather((M,), lambda y: (1 - y % 2 + 2 * e,), outside=0).tile((128,), (m,)), by, edge=0)
        sums = sums + x * f
    copy(sums, Y.tile((128,), (m,)), edge=0)
    x, f = elements(X), elements(F)

    def tap(y, r):
        at = (y - r) // 2
        return where(eq((y - r) % 2, 0) & (at >= 0) & (at < N), x(at), 0) * f(r)

    assert_equals(Y, lambda y: total(lambda r: tap(y, r), over=3))
