"""Softmax of rows, as one writes it first: a warp a row, element by element, three times over."""

from math import inf

import numpy as np

from argus.language import (
    Tensor, add, assert_equals, block_id, ceil_div, copy, exp, f32, greatest, kernel, load, loop, maximum, registers,
    sm_90a, spread, thread, total,
)

CHUNK = 32


@kernel(target=sm_90a, threads=32)
def softmax(X: Tensor["R N", f32], Y: Tensor["R N", f32]):
    R, N = X.shape
    (row,) = block_id((R,))
    x, y = X[row], Y[row]
    by = spread((CHUNK,), threads=32, vector=1)
    high, sums = registers(f32, by.partial(0)), registers(f32, by.partial(0))
    high[:], sums[:] = -inf, 0.0
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by, edge=-inf)
        high[:] = maximum(high, v.max(0, within=thread))
    top = high.max(0)
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by, edge=-inf)
        sums[:] = sums + exp(v - top).sum(0, within=thread)
    whole = sums.sum(0)
    for i in loop(ceil_div(N, CHUNK)):
        v = load(x.tile((CHUNK,), (i,)), by, edge=-inf)
        copy(exp(v - top) / whole, y.tile((CHUNK,), (i,)), edge=0)
    assert_equals(
        Y,
        lambda r, n: exp(X[r, n] - greatest(lambda j: X[r, j], over=N))
        / total(lambda j: exp(X[r, j] - greatest(lambda k: X[r, k], over=N)), over=N),
    )


def reference(X):
    """The softmax of each row."""
    weights = np.exp(X - X.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def work(R, N):
    return {"reads": 4 * R * N, "writes": 4 * R * N}
