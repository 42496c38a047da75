# verdict: refuted I4
"""The last row of each sequence is not stored: its last tile ends one row early."""

from __future__ import annotations

from argus.language import (
    Int, Tensor, assert_written_once, assume, block_id, ceil_div, copy, f32, i32, kernel, load, promise, scalar, sm_90a,
    spread, tag,
)


@kernel(target=sm_90a, threads=256)
def ragged(X: Tensor["T 64", f32], starts: Tensor["S", i32], Y: Tensor["T 64", f32], *, most: Int):
    (T, _), (S,) = X.shape, starts.shape
    promise(starts, ascending=True, first=0, last=T, most=most)
    assume(S >= 1, T < 1 << 28, most < 1 << 28)
    tag(X, lambda t, n: dict(t=t, n=n))
    i, b = block_id((ceil_div(most, 64), S - 1))
    by = spread((64, 64), threads=256, vector=4)
    first, end = scalar(starts[b]), scalar(starts[b + 1]) - 1
    rows = load(X.rows(first).tile((64, 64), (i, 0)), by, edge=0)
    copy(rows, Y.rows(first, end).tile((64, 64), (i, 0)), edge=0)
    assert_written_once(Y, lambda t, n: dict(t=t, n=n))
