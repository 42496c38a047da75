"""What the launches for the gradients of experts' matrices rely on, and what they compute, as formulas."""

from __future__ import annotations

from argus.kernels.schedules.attention_packed import ends_of
from argus.language import Int, Tensor, Value, assert_equals, assume, elements, eq, maximum, promise, total, where

BLOCK = 64
"""Rows that are multiplied at a time, and copied of each expert."""
CHUNK = 8
"""Elements in 16 bytes."""


def assume_rows(X: Tensor, G: Tensor, starts: Tensor, experts: Int) -> None:
    """Promise rows sorted by expert, and assume sizes: rows of 16 bytes, and coordinates of 32 bits."""
    (rows, high), wide = X.shape, G.shape[1]
    promise(starts, ascending=True, first=0, last=rows)
    assume(eq(starts.shape[0], experts + 1), rows < 1 << 28)
    assume(*(each >= 1 for each in (high, wide)), *(each % CHUNK == 0 for each in (high, wide)))
    assume(high < 1 << 20, wide < 1 << 20, experts < 1 << 16)


def claim_last_rows(given: Tensor, starts: Tensor, made: Tensor) -> None:
    """Claim that each expert's last rows, 1 to 64 of them, are copied, and followed by zeros alone.

    In a sum of real numbers one factor of zero would do, but 0 times what a neighbour's row holds may be NaN. given:
    (rows, N), sorted by expert. made: (experts, 64, N).
    """

    def value(e: Int, t: Int, i: Int) -> Value:
        first, end = ends_of(starts, e)
        start = first + maximum(0, end - first - 1) // BLOCK * BLOCK
        return where(t < end - start, elements(given)(start + t, i), 0.0)

    assert_equals(made, value)


def claim_weights(X: Tensor, G: Tensor, starts: Tensor, D: Tensor) -> None:
    """Claim that D[e] is X^T G over the rows of expert e alone."""
    x, g = elements(X), elements(G)

    def value(e: Int, i: Int, j: Int) -> Value:
        return total(lambda r: x(r, i) * g(r, j), over=ends_of(starts, e))

    assert_equals(D, value)
