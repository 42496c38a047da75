"""Stores that end where a condition does, such as tiles of `rows(start, stop)` of a tensor.

A conjunct such as `start + 64 i + r < stop` over the tile's coordinates bounds the coordinate of the tensor that the
view names by `start + 64 i + r`: of the tile, the elements that satisfy all bounds are stored, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from argus.core import algebra
from argus.core.index import And, Cmp, Cond, Coord, Held, Index
from argus.core.ir import Copy, View
from argus.core.walk import mentions, symbols


@frozen
class StoreEnd:
    """The bound `0 <= rest + sign * at` of a coordinate of the tensor. rest: the same for all threads and elements."""

    axis: int
    sign: int
    rest: Index

    def holds(self, at: Index) -> Cond:
        """The bound of a coordinate."""
        return algebra.le(0, algebra.add(self.rest, algebra.mul(at, self.sign)))


def store_ends(view: View) -> tuple[StoreEnd, ...] | None:
    """The bounds that a view's condition consists of; None if some part of it is no such bound."""
    parts = view.where.parts if isinstance(view.where, And) else (view.where,)
    found = [next(_bounds(view, cond), None) for cond in parts if cond is not algebra.TRUE]
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) else None


def ends_stores(stmt: Copy) -> bool:
    """Whether the condition of a store to a tensor bounds coordinates, so that a tile ends before its last element.

    Stores of boxes have no condition for each element. Along the last axis, which vectors follow, none may be cut.
    """
    target, plain = stmt.target, stmt.atom.box is None and stmt.combine is None and stmt.edge is not None
    ends = store_ends(target) if plain and target.buffer.space == "global" else None
    last = len(target.buffer.shape) - 1
    single = stmt.atom.vector_bits == target.buffer.dtype.bits
    return bool(ends) and all(single or each.axis != last for each in ends or ())


def _bounds(view: View, cond: Cond) -> Iterator[StoreEnd]:
    """The bounds of a coordinate that a condition is equivalent to."""
    if not isinstance(cond, Cmp) or cond.op != "<=":
        return
    apart = algebra.sub(cond.right, cond.left)
    for axis, at in enumerate(view.at):
        for sign in (1, -1) if mentions(at, (Coord,)) else ():
            rest = algebra.sub(apart, algebra.mul(at, sign))
            if not mentions(rest, (Coord, Held)) and all(each.kind != "thread" for each in symbols(rest)):
                yield StoreEnd(axis, sign, rest)


def element_conditions(ends: Sequence[StoreEnd], at: Sequence[Index]) -> tuple[Cond, ...]:
    """That the element at these coordinates satisfies the bounds."""
    return tuple(each.holds(at[each.axis]) for each in ends)
