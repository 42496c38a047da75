"""Hilbert order of output tiles within squares of S x S, so that tiles computed close in time share rows and columns.

With X rows and Y columns of tiles and squares of S x S tiles (S 4 or 16), q = X // S and p = Y // S count the squares.
Number t in [0, X Y) is
    t < q p S^2:  tile t % S^2 along the curve in square t // S^2, squares in row-major order;
    else, with v = t - q p S^2 and w = Y - S p: if v < S q w, tile v of the w columns right of the squares, row-major;
    else, with z = v - S q w: tile z of the rows below the squares, row-major.
Lemma. For X, Y >= 1 this is a bijection onto [0, X) x [0, Y) if the curve is a bijection from [0, S^2) onto a square.
Proof: the three ranges of t are consecutive and have q p S^2, S q w and (X - S q) Y numbers, X Y in all, since
S q (S p + w) = S q Y. Each maps bijectively (mixed radix) onto its part of the grid: rows below S q and columns below
S p; rows below S q and the other columns; the other rows. These parts partition the grid. Where w is 0, the second
range is empty. All intermediate values lie in [-2 X Y, 2 X Y + S^2].

The curve is Hilbert's [Math. Ann. 38, 1891], from the first tile of a square's first row to the last tile of that row,
so that it continues in the next square. The 4 x 4 curve is a lookup table of two 32-bit words, two bits per tile; the
16 x 16 curve is 16 copies of it along a coarse 4 x 4 curve, each transformed (transposed, rotated by 180 degrees) so
that they join.
"""

from __future__ import annotations

from functools import lru_cache

from attrs import frozen

from argus.core import algebra
from argus.core.index import Index

SIDES = (4, 16)
"""Supported side lengths of a square, in tiles."""


@frozen(eq=False)
class HilbertTile:
    """row, column: coordinates of tile number `number` in a grid of `rows` x `columns` tiles."""

    number: Index
    rows: Index
    columns: Index
    row: Index
    column: Index


@lru_cache(maxsize=64)
def hilbert_tile(number: Index, rows: Index, columns: Index, side: int) -> HilbertTile:
    """The coordinates of tile `number` in Hilbert order by squares of `side` tiles."""
    area = side * side
    high, wide = algebra.floordiv(rows, side), algebra.floordiv(columns, side)
    first = algebra.mul(algebra.mul(high, wide), area)
    square, inside = algebra.floordiv(number, area), algebra.mod(number, area)
    across = algebra.maximum(wide, 1)
    x, y = square_coordinates(inside, side)
    whole = (
        algebra.add(algebra.mul(algebra.floordiv(square, across), side), x),
        algebra.add(algebra.mul(algebra.mod(square, across), side), y),
    )
    left = algebra.sub(columns, algebra.mul(wide, side))
    rest, narrow = algebra.sub(number, first), algebra.maximum(left, 1)
    beside = algebra.mul(algebra.mul(high, left), side)
    right = algebra.floordiv(rest, narrow), algebra.add(algebra.mul(wide, side), algebra.mod(rest, narrow))
    last = algebra.sub(rest, beside)
    below = algebra.add(algebra.mul(high, side), algebra.floordiv(last, columns)), algebra.mod(last, columns)
    row, column = (
        algebra.pick(algebra.lt(number, first), one, algebra.pick(algebra.lt(rest, beside), two, three))
        for one, two, three in zip(whole, right, below, strict=True)
    )
    return HilbertTile(number, rows, columns, row, column)


def square_coordinates(number: Index, side: int) -> tuple[Index, Index]:
    """The coordinates of a tile in its square, given its number along the curve."""
    if side == _SMALL:
        return _lookup_two_bits(_ROWS, number), _lookup_two_bits(_COLUMNS, number)
    outer, inner = algebra.floordiv(number, _AREA), algebra.mod(number, _AREA)
    (x, y), symmetry = square_coordinates(inner, _SMALL), _lookup_two_bits(_SYMMETRIES, outer)
    last = _SMALL - 1
    transposed, rotated = algebra.bit_and(symmetry, 1), algebra.le(2, symmetry)
    x, y = (algebra.pick(algebra.eq(transposed, 1), one, other) for one, other in ((y, x), (x, y)))
    x, y = (algebra.pick(rotated, algebra.sub(last, each), each) for each in (x, y))
    big_x, big_y = square_coordinates(outer, _SMALL)
    return algebra.add(algebra.mul(big_x, _SMALL), x), algebra.add(algebra.mul(big_y, _SMALL), y)


def _lookup_two_bits(table: int, number: Index) -> Index:
    """Entry `number` of a table of 16 two-bit entries, packed into a 32-bit word."""
    return algebra.bit_and(algebra.shift_right(algebra.const(table), algebra.mul(number, 2)), 3)


def _hilbert(order: int) -> list[tuple[int, int]]:
    """The Hilbert curve of order `order`: coordinates in a 2^order square, from (0, 0) to (0, 2^order - 1)."""
    if order == 0:
        return [(0, 0)]
    half, inner = 1 << order - 1, _hilbert(order - 1)
    last = half - 1
    return [
        *((y, x) for x, y in inner),
        *((half + x, y) for x, y in inner),
        *((half + x, half + y) for x, y in inner),
        *((last - y, half + last - x) for x, y in inner),
    ]


def _symmetries() -> list[int]:
    """The symmetry of each 4 x 4 square along the 16 x 16 curve: bit 0 transposes, then bit 1 rotates by 180 deg."""
    small, large, found = _hilbert(2), _hilbert(4), list[int]()
    for at in range(_AREA):
        part = large[_AREA * at : _AREA * at + _AREA]
        corner = min(x for x, _ in part), min(y for _, y in part)
        inner = [(x - corner[0], y - corner[1]) for x, y in part]
        last = _SMALL - 1
        transposed = [(y, x) for x, y in small]
        kinds = (small, transposed, *([(last - x, last - y) for x, y in each] for each in (small, transposed)))
        found.append(kinds.index(inner))
    return found


def _pack_two_bits(values: list[int]) -> int:
    """Two-bit values packed into a 32-bit word, the first in the lowest bits, as a signed number."""
    found = sum(value << 2 * place for place, value in enumerate(values))
    return found - (1 << 32) if found >> 31 else found


_SMALL, _AREA = 4, 16
_ROWS = _pack_two_bits([x for x, _ in _hilbert(2)])
_COLUMNS = _pack_two_bits([y for _, y in _hilbert(2)])
_SYMMETRIES = _pack_two_bits(_symmetries())
