"""An order of tiles along a curve that fills squares, so that tiles nearby in time share rows and columns.

With X rows and Y columns of tiles and squares of S x S tiles (S 4 or 16), q = X // S and p = Y // S count the squares.
Number t in [0, X Y) is
    t < q p S^2:  tile t % S^2 along the curve of square t // S^2, squares by rows;
    else, of v = t - q p S^2 and w = Y - S p: v < S q w, tile v by rows of the w columns beside the squares;
    else, of z = v - S q w: tile z by rows of the rows below them.
Lemma. For X, Y >= 1 this is one to one onto [0, X) x [0, Y) if the curve is one to one from [0, S^2) onto a square.
Proof: the three ranges of t, of q p S^2, S q w and (X - S q) Y numbers, follow one another and are X Y numbers in all,
since S q (S p + w) = S q Y; each is one to one (mixed radix) onto its part of the grid: rows below S q and columns
below S p, rows below S q and the other columns, the other rows; and these are the grid. Where w is 0, the second range
is empty. Nothing that is computed on the way is beyond 2 X Y + S^2 or below -2 X Y.

The curve is Hilbert's [Math. Ann. 38, 1891], from the first tile of a square's first row to its last one, so that it
goes on in the next square. One of 4 x 4 is two numbers of 32 bits, two bits a tile; one of 16 x 16 is 16 of those along
a larger one of 4 x 4, each turned as the curve needs it.
"""

from __future__ import annotations

from functools import lru_cache

from attrs import frozen

from argus.core import algebra
from argus.core.index import Index

SIDES = (4, 16)
"""Tiles along the side of a square."""


@frozen(eq=False)
class HilbertTile:
    """row, column: of tile number `number` of a grid of so many rows and columns."""

    number: Index
    rows: Index
    columns: Index
    row: Index
    column: Index


@lru_cache(maxsize=64)
def hilbert_tile(number: Index, rows: Index, columns: Index, side: int) -> HilbertTile:
    """The place of a tile by its number."""
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
    """The place of a tile in its square by its number along the curve."""
    if side == _SMALL:
        return _looked_up(_ROWS, number), _looked_up(_COLUMNS, number)
    outer, inner = algebra.floordiv(number, _AREA), algebra.mod(number, _AREA)
    (x, y), turned = square_coordinates(inner, _SMALL), _looked_up(_TURNS, outer)
    last = _SMALL - 1
    swapped, back = algebra.bit_and(turned, 1), algebra.le(2, turned)
    x, y = (algebra.pick(algebra.eq(swapped, 1), one, other) for one, other in ((y, x), (x, y)))
    x, y = (algebra.pick(back, algebra.sub(last, each), each) for each in (x, y))
    big_x, big_y = square_coordinates(outer, _SMALL)
    return algebra.add(algebra.mul(big_x, _SMALL), x), algebra.add(algebra.mul(big_y, _SMALL), y)


def _looked_up(table: int, number: Index) -> Index:
    """Two bits of a number of 32."""
    return algebra.bit_and(algebra.shift_right(algebra.const(table), algebra.mul(number, 2)), 3)


def _hilbert(order: int) -> list[tuple[int, int]]:
    """Tiles of a square of 2^order, from (0, 0) to (0, 2^order - 1)."""
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


def _turns() -> list[int]:
    """How each square of 4 x 4 along the curve of 16 x 16 is turned: bit 0 over a diagonal, then bit 1 half round."""
    small, large, found = _hilbert(2), _hilbert(4), list[int]()
    for at in range(_AREA):
        part = large[_AREA * at : _AREA * at + _AREA]
        corner = min(x for x, _ in part), min(y for _, y in part)
        inner = [(x - corner[0], y - corner[1]) for x, y in part]
        last = _SMALL - 1
        swapped = [(y, x) for x, y in small]
        kinds = (small, swapped, *([(last - x, last - y) for x, y in each] for each in (small, swapped)))
        found.append(kinds.index(inner))
    return found


def _packed(values: list[int]) -> int:
    """Values of two bits, the first lowest, as the signed number of 32 bits that they are."""
    found = sum(value << 2 * place for place, value in enumerate(values))
    return found - (1 << 32) if found >> 31 else found


_SMALL, _AREA = 4, 16
_ROWS = _packed([x for x, _ in _hilbert(2)])
_COLUMNS = _packed([y for _, y in _hilbert(2)])
_TURNS = _packed(_turns())
