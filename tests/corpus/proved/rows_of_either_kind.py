# verdict: proved E404
"""Rows of ragged sequences, copied or negated by a flag of the sequence: both branches store to the same places."""

from __future__ import annotations

from argus.language import (
    Int, Tensor, assume, block_id, ceil_div, copy, eq, f32, i32, kernel, load, otherwise, promise, scalar, sm_90a,
    spread, when,
)


@kernel(target=sm_90a, threads=256)
def either(
    X: Tensor["T 64", f32],
    flags: Tensor["B", i32],  # noqa: UP037 reason: the name of a size
    starts: Tensor["S", i32],  # noqa: UP037 reason: as above
    Y: Tensor["T 64", f32],
    *,
    most: Int,
):
    (T, _), (B,), (S,) = X.shape, flags.shape, starts.shape
    promise(starts, ascending=True, first=0, last=T, most=most)
    assume(eq(S, B + 1), T < 1 << 28, most < 1 << 28)
    i, b = block_id((ceil_div(most, 64), B))
    by = spread((64, 64), threads=256, vector=4)
    first, end = scalar(starts[b]), scalar(starts[b + 1])
    rows = load(X.rows(first).tile((64, 64), (i, 0)), by, edge=0)
    with when(scalar(flags[b]) >= 1):
        copy(rows, Y.rows(first, end).tile((64, 64), (i, 0)), edge=0)
    with otherwise():
        copy(-rows, Y.rows(first, end).tile((64, 64), (i, 0)), edge=0)
