"""Loops of constant extents over what a thread holds."""

from __future__ import annotations

from collections.abc import Sequence


def loops(counters: Sequence[tuple[str, int]], *body: str) -> list[str]:
    """C text of nested loops, the first outermost, unrolled so that registers are indexed by constants."""
    lines: list[str] = []
    for name, extent in counters:
        lines.append("#pragma unroll")
        lines.append(f"for (int {name} = 0; {name} < {extent}; ++{name})")
    return [*lines, *(f"    {line}" for line in body)]
