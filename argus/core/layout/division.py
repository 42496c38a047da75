"""Exact quotients and remainders of shapes, beside `shape_div` of `argus.core.layout.inttuple`."""

from __future__ import annotations

from argus.core.layout.faults import LayoutError, malformed
from argus.core.layout.inttuple import IntTuple, checked, integer, product, shape_div, text


def safe_div(a: int, b: int) -> int:
    """a // b for a multiple of b, as in CuTe. Raises LayoutError: E807 otherwise, E801 for anything but ints."""
    whole, part = integer(a, "safe_div"), integer(b, "safe_div")
    if part == 0 or whole % part != 0:
        raise LayoutError("E807", f"safe_div: {part} does not divide {whole}", help=f"divide by a divisor of {whole}")
    return whole // part


def shape_mod(a: IntTuple, b: IntTuple) -> IntTuple:
    """Keep the first `b` elements of a shape, from the first mode on; mode by mode for a tuple.

    The counterpart of `shape_div` in CuTe's definition of composition (02_layout_algebra.md): the sizes of
    `shape_div(a, b)` and `shape_mod(a, b)` multiply to that of `a`. Each extent must divide the remaining count or be a
    multiple of it. Raises LayoutError: E807 otherwise, E801 for profiles that do not fit.
    """
    if isinstance(a, tuple):
        if isinstance(b, tuple):
            if len(a) != len(b):
                raise malformed(f"shape_mod of {text(a)} and {text(b)}: the ranks differ", "give congruent trees")
            return tuple([shape_mod(x, y) for x, y in zip(a, b, strict=True)])
        parts: list[IntTuple] = []
        for part in a:
            parts.append(shape_mod(part, b))
            b = shape_div(b, product(parts[-1]))
        return tuple(parts)
    extent, count = integer(a, "a shape"), product(checked(b, "a count"))
    if extent < 1 or count < 1 or (extent % count != 0 and count % extent != 0):
        raise LayoutError(
            "E807",
            f"shape_mod: {extent} and {count} do not divide, one way or the other",
            help="choose extents of which one is a multiple of the other",
        )
    return min(extent, count)
