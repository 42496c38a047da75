# verdict: refuted I39
"""Sums of the rows of ragged sequences; of up to eight rows zeros are stored in their place."""

from __future__ import annotations

from argus.language import (
    Tensor, assert_equals, assume, block_id, ceil_div, copy, elements, eq, f32, i32, kernel, load, loop, minimum,
    otherwise, promise, registers, scalar, sm_90a, spread, total, when,
)


@kernel(target=sm_90a, threads=32)
def sums(
    X: Tensor["T N", f32],
    starts: Tensor["S", i32],  # noqa: UP037 reason: the name of a size
    Y: Tensor["B N", f32],
):
    (T, N), (B, _), (S,) = X.shape, Y.shape, starts.shape
    promise(starts, ascending=True, first=0, last=T)
    assume(eq(S, B + 1), T < 1 << 28, N < 1 << 20, B < 1 << 20)
    n, b = block_id((ceil_div(N, 32), B))
    by = spread((32,), threads=32, vector=1)
    first, end = scalar(starts[b]), scalar(starts[b + 1])
    acc = registers(f32, by)
    acc[:] = 0.0
    with when(first + 8 < end):
        for r in loop(minimum(end - first, T)):
            acc[:] = acc + load(X.rows(first)[r].tile((32,), (n,)), by, edge=0)
        copy(acc, Y[b].tile((32,), (n,)), edge=0)
    with otherwise():
        copy(acc, Y[b].tile((32,), (n,)), edge=0)
    x = elements(X)
    assert_equals(Y, lambda b, n: total(lambda r: x(r, n), over=(scalar(starts[b]), scalar(starts[b + 1]))))
