"""64-bit tables of images, and their first collision, missing value, gap, and value outside an interval."""

from __future__ import annotations

from math import prod

import numpy as np

from argus.core.layout.composed import LayoutLike
from argus.core.layout.faults import TABLE_LIMIT, LayoutError, too_large
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import IntArray, Layout

LARGEST = 1 << 62
"""Bound on absolute values in a table: the sum or difference of two of them fits 64 bits."""


def tabulate(f: LayoutLike) -> IntArray:
    """The images of 0 .. size-1. Raises LayoutError (E810) for too many elements or too large values."""
    if f.size() > TABLE_LIMIT:
        raise too_large(f"{f} has {f.size()} elements")
    check_fits(f)
    return f.table()


def check_fits(f: LayoutLike) -> None:
    """Raise LayoutError (E810) unless images and intermediate values stay below LARGEST in absolute value."""
    _magnitude_bound(f, f.size() - 1)


def _magnitude_bound(f: LayoutLike, bound: int) -> int:
    """An upper bound on |f(i)| for |i| <= bound."""
    if isinstance(f, Swizzle):
        reach = 2 * max(bound, f.period)
    elif isinstance(f, Layout):
        *first, (_, last) = f.flat_modes or ((1, 0),)
        below = prod(extent for extent, _ in first)
        reach = sum((extent - 1) * abs(stride) for extent, stride in first) + (bound // below + 1) * abs(last)
    else:
        reach = _magnitude_bound(f.outer, _magnitude_bound(f.inner, bound) + abs(f.offset))
    if reach >= LARGEST:
        raise LayoutError(
            "E810",
            f"{f} may reach values of {reach.bit_length()} bits, a table holds at most {LARGEST.bit_length() - 1}",
            help="use smaller strides, or call it on the indices you need",
        )
    return reach


# -- queries on a table ---------------------------------------------------------------------------------------


def first_repeated(values: IntArray, indices: IntArray | None = None) -> tuple[int, int] | None:
    """(first, second): the smallest index `second` that has the value of an earlier index `first`; None if distinct.

    indices: of the values, ascending among equal values; 0, 1, ... by default.
    """
    order = np.argsort(values, kind="stable")
    same = np.flatnonzero(values[order[1:]] == values[order[:-1]])
    if not len(same):
        return None
    at = order if indices is None else indices[order]
    place = same[np.argmin(at[same + 1])]
    return int(at[place]), int(at[place + 1])


def first_value_outside(values: IntArray, onto: int) -> int | None:
    """The smallest index whose value is not in [0, onto); None if there is none."""
    wrong = (values < 0) | (values >= onto)
    return int(wrong.argmax()) if wrong.any() else None


def first_value_gap(values: IntArray) -> int | None:
    """The smallest integer between two values that is not a value; None if the values are an interval."""
    present = np.unique(values)
    holes = np.flatnonzero(present[1:] - present[:-1] > 1)
    return int(present[holes[0]]) + 1 if len(holes) else None


def first_missed(values: IntArray, onto: int) -> int | None:
    """The smallest integer of [0, onto) that is not a value; None if there is none. All values must be in [0, onto)."""
    if onto > len(values):
        present = np.unique(values)
        holes = np.flatnonzero(present != np.arange(len(present)))
        return int(holes[0]) if len(holes) else (len(present) if len(present) < onto else None)
    seen = np.zeros(onto, np.bool_)
    seen[values] = True
    return None if seen.all() else int(seen.argmin())
