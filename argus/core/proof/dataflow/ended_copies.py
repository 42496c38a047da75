"""Loads and stores that end where a view's condition does, such as those of tiles of `rows(start, stop)`."""

from __future__ import annotations

from collections.abc import Sequence

from argus.core.index import Cond, Index
from argus.core.ir import Copy, View
from argus.core.ir.view_ends import ViewEnd, box_end, view_ends


def ends_stores(stmt: Copy) -> bool:
    """Whether the condition of a store to a tensor bounds coordinates, so that a tile ends before its last element.

    Stores of boxes have no condition for each element.
    """
    return stmt.atom.box is None and stmt.combine is None and _ends_within_tile(stmt, stmt.target)


def ends_loads(stmt: Copy) -> bool:
    """Whether the condition of a load from a tensor bounds coordinates, beyond which the edge's value is read."""
    if stmt.atom.box is not None:
        boxed = stmt.edge is not None and stmt.source.buffer.space == "global"
        return boxed and box_end(stmt.source) is not None
    return stmt.target.buffer.space == "register" and _ends_within_tile(stmt, stmt.source)


def _ends_within_tile(stmt: Copy, memory: View) -> bool:
    """Whether a view's condition consists of bounds; along the last axis, which vectors follow, none may be cut."""
    ends = view_ends(memory) if stmt.edge is not None and memory.buffer.space == "global" else None
    last = len(memory.buffer.shape) - 1
    single = stmt.atom.vector_bits == memory.buffer.dtype.bits
    return bool(ends) and all(single or each.axis != last for each in ends or ())


def element_conditions(ends: Sequence[ViewEnd], at: Sequence[Index]) -> tuple[Cond, ...]:
    """That the element at these coordinates satisfies the bounds."""
    return tuple(each.holds(at[each.axis]) for each in ends)
