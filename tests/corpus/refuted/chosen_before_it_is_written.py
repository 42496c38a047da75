# verdict: refuted I38
"""A slope for negative elements: the second choice is a register tile that only some blocks have written."""

from argus.language import (
    Tensor, assert_written_once, assume, block_id, ceil_div, copy, f32, kernel, load, registers, sm_90a, spread, tag,
    when, where,
)


@kernel(target=sm_90a, threads=64)
def leaky(X: Tensor["M N", f32], Y: Tensor["M N", f32]):
    M, N = X.shape
    assume(N % 4 == 0)
    tag(X, lambda m, n: dict(m=m, n=n))
    by = spread((16, 32), threads=64, vector=4)
    m, n = block_id((ceil_div(M, 16), ceil_div(N, 32)))
    x = load(X.tile((16, 32), (m, n)), by, edge=0)
    slope = registers(f32, by)
    with when(m > 0):
        slope[:] = x * 0.125
    copy(where(x < 0.0, slope, x), Y.tile((16, 32), (m, n)), edge=0)
    assert_written_once(Y, lambda m, n: dict(m=m, n=n))
