"""Unrolled loops over registers."""

from __future__ import annotations

from collections.abc import Sequence


def unrolled_loops(counters: Sequence[tuple[str, int]], *body: str) -> list[str]:
    """Nested unrolled C loops, the first counter outermost; unrolling makes every register index a constant."""
    lines: list[str] = []
    for name, extent in counters:
        lines.append("#pragma unroll")
        lines.append(f"for (int {name} = 0; {name} < {extent}; ++{name})")
    return [*lines, *(f"    {line}" for line in body)]
