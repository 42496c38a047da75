"""Reading back in space: cells that two accesses share, parts of register tiles, cells that an agent's number moves."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.ir import View
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.affine import affine
from argus.core.proof.dataflow.footprints import Writers
from argus.core.proof.dataflow.separable_index import FragmentIndex, select_by_mask
from argus.core.proof.dataflow.timeline import Shift, is_whole
from argus.core.proof.values.content import BoolArray, Content, Data, Inside, Piece, Top, Value
from argus.core.walk import symbols


def agent_symbol_of_cells(access: Access) -> Symbol | None:
    """The agent's number, where it moves cells and not whole slots."""
    for place in access.places or ():
        if not place.uniform:
            for symbol in symbols(place.base):
                if symbol.kind == "agent" and symbol.low is not None and symbol.high is not None:
                    return symbol
    return None


def substitute_agent(access: Access, number: Shift) -> Access:
    assert access.places is not None
    return evolve(access, places=tuple(place.shifted(number) for place in access.places))


def restrict_to_access(content: Content, access: Access) -> Content:
    """What a whole tile holds, for those of its registers that are accessed."""
    assert access.places is not None
    values = content[0].mask.shape[1]
    index = access.places[0].table // values, access.places[0].table % values
    return tuple(piece.at(index) for piece in content)


def in_view_coordinates(content: Content, view: View) -> Content:
    """What is read of a register tile, its sets told by the coordinates of a view of it."""
    if view.buffer.space != "register":
        return content
    return tuple(
        evolve(piece, value=piece.value.at_coordinates(view.at)) if isinstance(piece.value, Data) else piece
        for piece in content
    )


def read_written(content: Content, wrote: Access, read: Access, mask: BoolArray, taken: Writers) -> list[Piece]:
    """What was written, at the elements of a mask that are read; taken: who wrote each."""
    found: list[Piece] = []
    for piece in content:
        here = mask & (piece.mask if taken.same else piece.mask[taken.place])
        if here.any():
            found.append(Piece(here, piece.guard, _retold(piece.value, wrote, read, taken)))
    return found


def _retold(value: Value, wrote: Access, read: Access, taken: Writers) -> Value:
    """A value at the elements read: what is said by coordinates is told by the reader's, not the writer's."""
    if not isinstance(value, Data):
        return value
    found = value if taken.same else value.at(taken.place)
    if not value.axes or (read.view.buffer.space == "register" and is_whole(wrote.view)):
        return found
    if read.view.buffer.space == "register" or wrote.by is None or read.by is None:
        return Top("rows that differ in their sets are part of a register tile")
    places: list[Index] = []
    for axis, coordinate in enumerate(wrote.by.coordinates()):
        place = affine(np.broadcast_to(coordinate, wrote.shape)[taken.place], read.by)
        if place is None and axis in value.axes:
            return Top("rows that differ in their sets are read back in another order")
        places.append(algebra.const(0) if place is None else place)
    return found.at_coordinates(places)


_BITS = 62
"""Pieces that one number can tell apart by its bits."""


def split_by_region(pieces: Content) -> Content:
    """The same content cut so that any two pieces are of the same elements or of none in common."""
    alike = all(np.array_equal(piece.mask, pieces[0].mask) for piece in pieces)
    if alike or len(pieces) > _BITS:  # more are left as they are: cases that are not joined are cases
        return pieces
    held = sum(piece.mask.astype(np.int64) << number for number, piece in enumerate(pieces))
    return tuple(
        evolve(piece, mask=held == code)
        for code in np.unique(held).tolist()
        for number, piece in enumerate(pieces)
        if code >> number & 1
    )


def union_pieces(one: Piece, two: Piece) -> Piece | None:
    """Two parts of a tile with one symbolic formula, as one table."""
    assert isinstance(one.value, Data)
    assert isinstance(two.value, Data)
    a, b = one.value, two.value
    if (a.form, a.computed, a.root, a.times) != (b.form, b.computed, b.root, b.times) or not (a.plain and b.plain):
        return None
    if a.record.keys() != b.record.keys() or len(a.inside) != len(b.inside) or a.fill != b.fill or a.sets or b.sets:
        return None
    record: dict[str, FragmentIndex] = {}
    for name in a.record:
        both = select_by_mask(a.record[name], b.record[name], one.mask)
        if both is None:
            return None
        record[name] = both
    inside: list[Inside] = []
    for mine, theirs in zip(a.inside, b.inside, strict=True):
        place = select_by_mask(mine.coordinate, theirs.coordinate, one.mask)
        if not mine.same_bound(theirs) or place is None:
            return None
        inside.append(evolve(mine, coordinate=place))
    return Piece(one.mask | two.mask, one.guard, evolve(a, record=record, inside=tuple(inside), terms=()))
