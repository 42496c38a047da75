"""Decide whether a layout-like function is linear over F2, and whether a matrix is a layout or a swizzled layout."""

from __future__ import annotations

import numpy as np

from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.f2.elimination import xor_columns
from argus.core.layout.faults import TABLE_LIMIT, LayoutError, too_large
from argus.core.layout.images.tables import check_fits
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout

Columns = tuple[int, ...]
"""The columns of a matrix over F2: the images of 1, 2, 4, ...; bit r of a column is row r."""

_PROBED_ELEMENTS = 1 << 16


def columns_of(f: LayoutLike) -> Columns:
    """The images of 1, 2, 4, ..., if f(x ^ y) = f(x) ^ f(y) on the whole domain and no image is negative.

    Needs no table for layouts, swizzles, and compositions of linear parts. Raises LayoutError: E809 with the smallest
    index at which that fails, the image that linearity requires and the actual one; E810 if a table is too large.
    """
    bits = f.size().bit_length() - 1
    if f.size() != 1 << bits:
        raise LayoutError(
            "E809",
            f"{f} has {f.size()} elements, expected a power of two",
            help="pad each extent to a power of two, or use a `Relation`",
        )
    if isinstance(f, Swizzle):
        return _swizzle_columns(f, bits)
    if isinstance(f, Layout):
        return _layout_columns(f, bits)
    if f(0) != 0:
        raise not_linear(f, 0, 0, f(0))
    columns = _columns_by_structure(f, bits)
    return _columns_by_table(f, bits) if columns is None else columns


def not_linear(f: object, index: int, expected: int | None, found: int) -> LayoutError:
    """E809: the smallest index at which the function is not linear."""
    wanted = "no negative image" if expected is None else f"{expected}"
    return LayoutError(
        "E809",
        f"{f} is not linear over F2: its image of {index} is {found}, expected {wanted}",
        help="use a `Relation` for functions that are no matrix of bits",
        index=index,
        expected=expected,
        found=found,
    )


def overlapping_columns(columns: Columns) -> tuple[int, int] | None:
    """(low, high): two columns that share a set bit, with the least `high`, then the least `low`; None if disjoint."""
    seen = 0
    for high, column in enumerate(columns):
        if column & seen:
            return next(low for low, other in enumerate(columns) if other & column), high
        seen |= column
    return None


def _swizzle_columns(f: Swizzle, bits: int) -> Columns:
    return tuple(f(1 << bit) for bit in range(bits))


def _layout_columns(f: Layout, bits: int) -> Columns:
    """A layout of power-of-two extents adds the images of bits; the sum equals the xor iff no two share a set bit."""
    columns = tuple(f(1 << bit) for bit in range(bits))
    negative = next((bit for bit, column in enumerate(columns) if column < 0), bits)
    pair = overlapping_columns(columns[:negative])
    if pair is not None:
        low, high = columns[pair[0]], columns[pair[1]]
        raise not_linear(f, (1 << pair[0]) | (1 << pair[1]), low ^ high, low + high)
    if negative < bits:
        raise not_linear(f, 1 << negative, None, columns[negative])
    return columns


def _columns_by_structure(f: LayoutLike, bits: int) -> Columns | None:
    """The images of 1, 2, 4, ... if the structure of f shows that f is linear on [0, 2**bits); None if it does not."""
    if isinstance(f, Swizzle):
        return _swizzle_columns(f, bits)
    if isinstance(f, Layout):
        if any(extent & (extent - 1) for extent, _ in f.flat_modes[:-1]):
            return None
        columns = tuple(f(1 << bit) for bit in range(bits))
        return None if any(column < 0 for column in columns) or overlapping_columns(columns) else columns
    inner = _columns_by_structure(f.inner, bits)
    if inner is None or f.offset < 0:
        return None
    reached = 0
    for column in inner:
        reached |= column
    outer = _columns_by_structure(f.outer, (reached | f.offset).bit_length())
    # An offset that shares no bit with the inner images acts as a xor; outer must map it to 0.
    if outer is None or reached & f.offset or xor_columns(outer, f.offset):
        return None
    return tuple(xor_columns(outer, column) for column in inner)


def _columns_by_table(f: ComposedLayout, bits: int) -> Columns:
    """`columns_of` for a function with f(0) = 0, from a table, one index bit after another.

    Also reads the first images of a function too large for a table: they may show that it is not linear.
    """
    check_fits(f)
    limit = TABLE_LIMIT if f.size() <= TABLE_LIMIT else _PROBED_ELEMENTS
    expected = np.zeros(1, np.int64)
    columns: list[int] = []
    for bit in range(bits):
        begin = 1 << bit
        if 2 * begin > limit:
            raise too_large(f"{f} has {f.size()} elements")
        images = f.images(np.arange(begin, 2 * begin, dtype=np.int64))
        column = int(images[0])
        if column < 0:
            raise not_linear(f, begin, None, column)
        wanted = expected ^ column
        wrong = images != wanted
        if wrong.any():
            place = int(wrong.argmax())
            raise not_linear(f, begin + place, int(wanted[place]), int(images[place]))
        expected = np.concatenate([expected, wanted])
        columns.append(column)
    return tuple(columns)


def factor_swizzle(columns: Columns) -> tuple[Swizzle, Columns] | None:
    """(swizzle, columns of a layout) whose composition has these columns; None if there is none.

    A swizzle is its own inverse, so applying it must make the columns disjoint. It must write every row that two
    columns share, from the lowest to the highest; writing further rows never helps, since those are disjoint already.
    The search varies only the rows that it reads: the nearest that work, and of two equally near the higher.
    """
    seen = shared = 0
    for column in columns:
        shared |= seen & column
        seen |= column
    low = (shared & -shared).bit_length() - 1
    width = shared.bit_length() - low
    for distance in range(width, seen.bit_length()):
        for shift in (distance, -distance):
            if low + shift >= 0:
                swizzle = Swizzle(width, min(low, low + shift), shift)
                inner = tuple(map(swizzle, columns))
                if overlapping_columns(inner) is None:
                    return swizzle, inner
    return None
