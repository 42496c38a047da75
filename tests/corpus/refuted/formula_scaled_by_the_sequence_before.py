# verdict: refuted I39
"""Rows of ragged sequences, each times the factor of the sequence before its own."""

from __future__ import annotations

from argus.language import (
    Int, Tensor, assert_equals, assume, block_id, ceil_div, copy, eq, f32, i32, kernel, load, maximum, promise, scalar,
    sm_90a, spread, total,
)


@kernel(target=sm_90a, threads=256)
def scaled(
    X: Tensor["T 64", f32],
    F: Tensor["B", f32],  # noqa: UP037 reason: the name of a size
    starts: Tensor["S", i32],  # noqa: UP037 reason: as above
    Y: Tensor["T 64", f32],
    *,
    most: Int,
):
    (T, _), (B,), (S,) = X.shape, F.shape, starts.shape
    promise(starts, ascending=True, first=0, last=T, most=most)
    assume(eq(S, B + 1), T < 1 << 28, most < 1 << 28)
    i, b = block_id((ceil_div(most, 64), B))
    by = spread((64, 64), threads=256, vector=4)
    first, end = scalar(starts[b]), scalar(starts[b + 1])
    rows = load(X.rows(first).tile((64, 64), (i, 0)), by, edge=0)
    factor = load(F.gather((64,), lambda _: (maximum(b - 1, 0),)), by.axis(0))
    copy(rows * factor, Y.rows(first, end).tile((64, 64), (i, 0)), edge=0)

    def of_row(t: Int, n: Int):
        def holds(s: Int):
            return (scalar(starts[s]) <= t) & (t < scalar(starts[s + 1]))

        return total(lambda s: X[t, n] * F[s], over=B, where=holds)

    assert_equals(Y, of_row)
