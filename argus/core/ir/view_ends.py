"""Views that end where a condition does, such as tiles of `rows(start, stop)` of a tensor.

A conjunct such as `start + 64 i + r < stop` over the tile's coordinates bounds the coordinate of the tensor that the
view names by `start + 64 i + r`: of the tile, the elements that satisfy all bounds are accessed, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from argus.core import algebra
from argus.core.index import And, Cmp, Cond, Coord, Held, Index
from argus.core.ir.storage import View
from argus.core.walk import mentions, symbols

ENDED_ROWS = 1 << 30
"""Rows of the axis beyond which a box ends, of the tensor map of boxes that end; as many as any tensor has."""
ENDED_AXES = 2
"""The axes that such a map has more than its tensor."""


@frozen
class ViewEnd:
    """The bound `0 <= rest + sign * at` of a coordinate of the tensor. rest: the same for all threads and elements."""

    axis: int
    sign: int
    rest: Index

    def holds(self, at: Index) -> Cond:
        """The bound of a coordinate."""
        return algebra.le(0, algebra.add(self.rest, algebra.mul(at, self.sign)))


@frozen
class BoxEnd:
    """Where a box of a tensor ends: before the coordinate `stop` along `axis`, the first axis of the box.

    lower: bounds from below, which the box's first row must satisfy.
    """

    axis: int
    stop: Index
    lower: tuple[ViewEnd, ...]


def ended_coordinates(end: BoxEnd, first: Sequence[Index]) -> tuple[Index, ...]:
    """The coordinates of a box that ends, in the tensor map that has `stop` as an axis of its own.

    first: those of its first element in the tensor. Along the three axes that replace the one of rows, the box is at
    ENDED_ROWS, at `stop`, and at ENDED_ROWS + row - stop, so that rows from `stop` on lie beyond the last one's end.
    The strides of the latter two are that of a row, and that of the first one takes ENDED_ROWS rows back.
    """
    row = algebra.add(algebra.sub(first[end.axis], end.stop), ENDED_ROWS)
    return *first[: end.axis], algebra.const(ENDED_ROWS), end.stop, row, *first[end.axis + 1 :]


def view_ends(view: View) -> tuple[ViewEnd, ...] | None:
    """The bounds that a view's condition consists of; None if some part of it is no such bound."""
    parts = view.where.parts if isinstance(view.where, And) else (view.where,)
    found = [next(_bounds(view, cond), None) for cond in parts if cond is not algebra.TRUE]
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) else None


def box_end(view: View) -> BoxEnd | None:
    """Where a box ends, if its condition is one bound from above along its first axis, beside bounds from below."""
    ends, axis = view_ends(view) or (), len(view.at) - len(view.shape)
    upper = [each for each in ends if each.sign < 0]
    if len(upper) != 1 or any(each.axis != axis for each in ends) or len(view.shape) < len(("rows", "columns")):
        return None
    return BoxEnd(axis, algebra.add(upper[0].rest, 1), tuple(each for each in ends if each.sign > 0))


def _bounds(view: View, cond: Cond) -> Iterator[ViewEnd]:
    """The bounds of a coordinate that a condition is equivalent to."""
    if not isinstance(cond, Cmp) or cond.op != "<=":
        return
    apart = algebra.sub(cond.right, cond.left)
    for axis, at in enumerate(view.at):
        for sign in (1, -1) if mentions(at, (Coord,)) else ():
            rest = algebra.sub(apart, algebra.mul(at, sign))
            if not mentions(rest, (Coord, Held)) and all(each.kind != "thread" for each in symbols(rest)):
                yield ViewEnd(axis, sign, rest)
