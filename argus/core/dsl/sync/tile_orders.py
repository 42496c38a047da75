"""Orders of tiles, and the parts of a range that blocks share."""

from __future__ import annotations

from collections.abc import Callable

from argus.core import algebra
from argus.core.dsl.faults import fault
from argus.core.dsl.handles import Int, IntLike, extent, unwrap
from argus.core.hilbert_order import SIDES, hilbert_tile

Order = Callable[[Int, tuple[Int, ...]], tuple[IntLike, ...]]
"""From a tile's number and the counts of tiles to its coordinates: a bijection, which is proved."""


def by_rows(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
    """Last axis fastest."""
    return tuple(reversed(_digits(number, tuple(reversed(counts)))))


def by_columns(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
    """First axis fastest."""
    return _digits(number, counts)


def _digits(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
    found: list[Int] = []
    for count in counts[:-1]:
        found.append(number % count)
        number = number // count
    return (*found, number)


def super_tiled(rows: int) -> Order:
    """Two axes: bands of `rows` rows (the last may be lower), each column by column, so that tiles nearby in time
    share rows and columns in the second-level cache.
    """
    height = extent(rows, "the rows of a super-tile")

    def order(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
        if len(counts) != 2:
            fault("E106", f"super-tiles of {len(counts)} axes", help="order tiles of two axes so")
        m, n = counts
        band = number // (n * height)
        inside = number - band * (n * height)
        high = Int(algebra.minimum(height, (m - band * height).node))
        column = inside // high
        return band * height + (inside - column * high), column

    return order


def curved(side: int) -> Order:
    """Two axes: along Hilbert's curve through squares of `side` x `side` tiles (4 or 16), squares by rows, then the
    tiles beside them and those below: tiles nearby in time share rows and columns, at every scale up to a square's.
    """
    tiles = extent(side, "the side of a square")
    if tiles not in SIDES:
        fault("E106", f"a curve through squares of {tiles} x {tiles} tiles", help="give 4 or 16")

    def order(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
        if len(counts) != 2:
            fault("E106", f"a curve through {len(counts)} axes", help="order tiles of two axes so")
        found = hilbert_tile(number.node, counts[0].node, counts[1].node, tiles)
        return Int(found.row), Int(found.column)

    return order


def longest_first(*, sections: int) -> Order:
    """Three axes (i, j, k), of which tiles with a high i take longest, as under a causal mask: those come first.

    Sections of `sections` pairs (j, k), j fastest, follow one another, the last may be smaller; within one, i descends
    and for each i all its pairs are taken, so that what a pair reads stays in the second-level cache.
    """
    width = extent(sections, "the pairs of a section")

    def order(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
        if len(counts) != 3:
            fault("E106", f"the longest first of {len(counts)} axes", help="order tiles of three axes so")
        rows, inner, outer = counts
        section = number // (rows * width)
        inside = number - section * (rows * width)
        pairs = Int(algebra.minimum(width, (inner * outer - section * width).node))
        row = inside // pairs
        pair = section * width + (inside - row * pairs)
        return rows - 1 - row, pair % inner, pair // inner

    return order


def span(part: IntLike, parts: IntLike, count: IntLike) -> tuple[Int, Int]:
    """Where part number `part` of `parts` of the range [0, count) begins and ends.

    Parts follow one another and differ by one in length; where there are more of them than numbers, some are empty.
    """
    first = Int(algebra.mul(unwrap(part), unwrap(count)))
    after = Int(algebra.mul(algebra.add(unwrap(part), 1), unwrap(count)))
    return first // parts, after // parts
