# verdict: unknown
"""The first weights of a row are relative to their own maximum, also in rows of up to two blocks."""

from math import inf

from argus.language import (
    TV, Layout, Tensor, assert_covers, assert_written_once, assume, block_id, ceil_div, copy, exp, f32, kernel, load,
    loop, maximum, registers, sm_90a, tag, warp, where,
)


@kernel(target=sm_90a, threads=32)
def softmax(X: Tensor["R N", f32], Y: Tensor["R 32", f32]):
    R, N = X.shape
    assume(N >= 32, N < 1 << 20)
    tag(X, lambda r, n: dict(r=r, n=n))
    (i,) = block_id((R,))
    by = TV(Layout((32,), (1,)), Layout((1,), (1,)), (1, 32))
    first = load(X.tile((1, 32), (i, 0)), by)
    own = first.max(1, within=warp)
    assert_covers(own.tag.n, 0, 32)
    high, z = registers(f32, own.layout), registers(f32, own.layout)
    high[:] = own
    for k in loop(1, ceil_div(N, 32)):
        high[:] = maximum(high, load(X.tile((1, 32), (i, k)), by, edge=-inf).max(1, within=warp))
    assert_covers(high.tag.n, 0, N)
    z[:] = 0.0
    for k in loop(ceil_div(N, 32)):
        z[:] = z + exp(load(X.tile((1, 32), (i, k)), by, edge=-inf) - high).sum(1, within=warp)
    assert_covers(z.tag.n, 0, N)
    copy(exp(first - where(N <= 64, own, high)) / z, Y.tile((1, 32), (i, 0)))
    assert_written_once(Y, lambda r, n: dict(r=r, n=n))
