"""Which layouts, swizzles and composed layouts are linear over F2, and which matrices are layouts or swizzled ones."""

from __future__ import annotations

import numpy as np

from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.f2.elimination import combined
from argus.core.layout.faults import TABLE_LIMIT, LayoutError, too_large
from argus.core.layout.images.tables import fits
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout

Columns = tuple[int, ...]
"""The images of 1, 2, 4, ...: the columns of a matrix, bit r of a column is its row r."""

_PROBE = 1 << 16


def columns_of(f: LayoutLike) -> Columns:
    """The images of single bits, where f(x ^ y) = f(x) ^ f(y) on the whole domain and no image is negative.

    Decided without a table for layouts, swizzles, and compositions of linear parts. Raises LayoutError: E809 with
    the smallest index at which that fails, what the bits below it demand and what is there; E810.
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
    columns = _structural(f, bits)
    return _tabulated(f, bits) if columns is None else columns


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


def carry(columns: Columns) -> tuple[int, int] | None:
    """(low, high): columns with a bit in common, with the least `high`, then the least `low`; None if disjoint."""
    seen = 0
    for high, column in enumerate(columns):
        if column & seen:
            return next(low for low, other in enumerate(columns) if other & column), high
        seen |= column
    return None


def _swizzle_columns(f: Swizzle, bits: int) -> Columns:
    return tuple(f(1 << bit) for bit in range(bits))


def _layout_columns(f: Layout, bits: int) -> Columns:
    """A layout of power-of-two extents adds the images of bits; that is xor if and only if no bits are in common."""
    columns = tuple(f(1 << bit) for bit in range(bits))
    negative = next((bit for bit, column in enumerate(columns) if column < 0), bits)
    pair = carry(columns[:negative])
    if pair is not None:
        low, high = columns[pair[0]], columns[pair[1]]
        raise not_linear(f, (1 << pair[0]) | (1 << pair[1]), low ^ high, low + high)
    if negative < bits:
        raise not_linear(f, 1 << negative, None, columns[negative])
    return columns


def _structural(f: LayoutLike, bits: int) -> Columns | None:
    """The images of single bits if the parts of f show that f is linear on [0, 2**bits); None if they do not."""
    if isinstance(f, Swizzle):
        return _swizzle_columns(f, bits)
    if isinstance(f, Layout):
        if any(extent & (extent - 1) for extent, _ in f.flat_modes[:-1]):
            return None
        columns = tuple(f(1 << bit) for bit in range(bits))
        return None if any(column < 0 for column in columns) or carry(columns) else columns
    inner = _structural(f.inner, bits)
    if inner is None or f.offset < 0:
        return None
    reached = 0
    for column in inner:
        reached |= column
    outer = _structural(f.outer, (reached | f.offset).bit_length())
    # An offset that shares no bit with the inner images is a sum by xor, and outer must map it to 0.
    if outer is None or reached & f.offset or combined(outer, f.offset):
        return None
    return tuple(combined(outer, column) for column in inner)


def _tabulated(f: ComposedLayout, bits: int) -> Columns:
    """As `columns_of`, of a function with f(0) = 0, by the images of all indices, one bit after another.

    Of a function too large for a table the first images are read all the same: they may show that it is not linear.
    """
    fits(f)
    limit = TABLE_LIMIT if f.size() <= TABLE_LIMIT else _PROBE
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


def swizzled(columns: Columns) -> tuple[Swizzle, Columns] | None:
    """(swizzle, columns of a layout) whose composition has these columns; None if there is no such pair.

    A swizzle is its own inverse, so it must make the columns disjoint. It has to write every row in which two of
    them meet, from the lowest to the highest; to write more rows never helps, since the others are disjoint. What
    is left to choose is where it reads; the nearest rows that do are taken, those above first.
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
                if carry(inner) is None:
                    return swizzle, inner
    return None
