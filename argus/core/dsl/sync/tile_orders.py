"""Tile orders for `persistent`, and the even split of a range into parts."""

from __future__ import annotations

from collections.abc import Callable

from argus.core import algebra
from argus.core.dsl.faults import fault
from argus.core.dsl.handles import Int, IntLike, extent, unwrap
from argus.core.hilbert_order import SIDES, hilbert_tile

Order = Callable[[Int, tuple[Int, ...]], tuple[IntLike, ...]]
"""From a tile's number and the counts of tiles to its coordinates: a bijection, which the proof checks."""


def by_rows(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
    """Row-major order: last axis fastest."""
    return tuple(reversed(_mixed_radix_digits(number, tuple(reversed(counts)))))


def by_columns(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
    """Column-major order: first axis fastest."""
    return _mixed_radix_digits(number, counts)


def _mixed_radix_digits(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
    found: list[Int] = []
    for count in counts[:-1]:
        found.append(number % count)
        number = number // count
    return (*found, number)


def super_tiled(rows: int) -> Order:
    """Supertiles of two axes: groups of `rows` rows (the last may have fewer), each column by column.

    Tiles that run concurrently then share rows and columns in the L2 cache.
    """
    height = extent(rows, "the rows of a super-tile")

    def order(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
        if len(counts) != 2:
            fault("E106", f"super-tiles of {len(counts)} axes", help="use it for tiles of two axes")
        m, n = counts
        band = number // (n * height)
        inside = number - band * (n * height)
        high = Int(algebra.minimum(height, (m - band * height).node))
        column = inside // high
        return band * height + (inside - column * high), column

    return order


def curved(side: int) -> Order:
    """Hilbert order of two axes: squares of `side` x `side` tiles (4 or 16), each along a Hilbert curve.

    Squares follow in row-major order, then the tiles to their right and below. Tiles that run concurrently share rows
    and columns at every scale up to a square.
    """
    tiles = extent(side, "the side of a square")
    if tiles not in SIDES:
        fault("E106", f"a Hilbert curve in squares of {tiles} x {tiles} tiles", help="give 4 or 16")

    def order(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
        if len(counts) != 2:
            fault("E106", f"a Hilbert curve over {len(counts)} axes", help="use it for tiles of two axes")
        found = hilbert_tile(number.node, counts[0].node, counts[1].node, tiles)
        return Int(found.row), Int(found.column)

    return order


def longest_first(*, sections: int) -> Order:
    """Three axes (i, j, k) in descending i, for tiles that take longer the higher i is, as under a causal mask.

    Pairs (j, k), j fastest, are divided into sections of `sections` pairs (the last may have fewer). Within a section
    i descends, and all pairs of the section follow for each i, so that the data of a pair stays in the L2 cache.
    """
    width = extent(sections, "the pairs of a section")

    def order(number: Int, counts: tuple[Int, ...]) -> tuple[Int, ...]:
        if len(counts) != 3:
            fault("E106", f"`longest_first` of {len(counts)} axes", help="use it for tiles of three axes")
        rows, inner, outer = counts
        section = number // (rows * width)
        inside = number - section * (rows * width)
        pairs = Int(algebra.minimum(width, (inner * outer - section * width).node))
        row = inside // pairs
        pair = section * width + (inside - row * pairs)
        return rows - 1 - row, pair % inner, pair // inner

    return order


def span(part: IntLike, parts: IntLike, count: IntLike) -> tuple[Int, Int]:
    """Begin and end of part number `part` when [0, count) is split into `parts` contiguous parts.

    Lengths of parts differ by at most one; some parts are empty if parts > count.
    """
    first = Int(algebra.mul(unwrap(part), unwrap(count)))
    after = Int(algebra.mul(algebra.add(unwrap(part), 1), unwrap(count)))
    return first // parts, after // parts
