"""Unrolled loops over registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def unrolled_loops(
    counters: Sequence[tuple[str, int]], *body: str, start: Mapping[str, int] | None = None
) -> list[str]:
    """Nested unrolled C loops, the first counter outermost; unrolling makes every register index a constant.

    start: first values other than 0.
    """
    lines: list[str] = []
    for name, extent in counters:
        lines.append("#pragma unroll")
        lines.append(f"for (int {name} = {(start or {}).get(name, 0)}; {name} < {extent}; ++{name})")
    return [*lines, *(f"    {line}" for line in body)]
