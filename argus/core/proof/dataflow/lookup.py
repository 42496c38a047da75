"""Selects from a written content the elements that a read accesses, and splits and unites its pieces."""

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
    """The agent symbol on which the cells of an access depend; None if it selects only slots, or nothing."""
    for place in access.places or ():
        if not place.uniform:
            for symbol in symbols(place.base):
                if symbol.kind == "agent" and symbol.low is not None and symbol.high is not None:
                    return symbol
    return None


def substitute_agent(access: Access, number: Shift) -> Access:
    """The access of one agent."""
    assert access.places is not None
    return evolve(access, places=tuple(place.shifted(number) for place in access.places))


def restrict_to_access(content: Content, access: Access) -> Content:
    """The content of a whole tile at the registers that an access reads."""
    assert access.places is not None
    values = content[0].mask.shape[1]
    index = access.places[0].table // values, access.places[0].table % values
    return tuple(piece.at(index) for piece in content)


def in_view_coordinates(content: Content, view: View) -> Content:
    """The content of a register tile with its sets expressed in the coordinates of a view of it."""
    if view.buffer.space != "register":
        return content
    return tuple(
        evolve(piece, value=piece.value.at_coordinates(view.at)) if isinstance(piece.value, Data) else piece
        for piece in content
    )


def read_written(content: Content, wrote: Access, read: Access, mask: BoolArray, writers: Writers) -> list[Piece]:
    """The written content at those elements of a read that the mask selects. writers: writer of each element."""
    found: list[Piece] = []
    for piece in content:
        here = mask & (piece.mask if writers.same else piece.mask[writers.writer])
        if here.any():
            found.append(Piece(here, piece.guard, _in_reader_coordinates(piece.value, wrote, read, writers)))
    return found


def _in_reader_coordinates(value: Value, wrote: Access, read: Access, writers: Writers) -> Value:
    """A written value at the elements of a read, with coordinates of the writer replaced by those of the reader."""
    if not isinstance(value, Data):
        return value
    found = value if writers.same else value.at(writers.writer)
    if not value.axes or (read.view.buffer.space == "register" and is_whole(wrote.view)):
        return found
    if read.view.buffer.space == "register" or wrote.by is None or read.by is None:
        return Top("rows that differ in their sets are part of a register tile")
    places: list[Index] = []
    for axis, coordinate in enumerate(wrote.by.coordinates()):
        place = affine(np.broadcast_to(coordinate, wrote.shape)[writers.writer], read.by)
        if place is None and axis in value.axes:
            return Top("rows that differ in their sets are read back in another order")
        places.append(algebra.const(0) if place is None else place)
    return found.at_coordinates(places)


_MAX_ENCODED = 62
"""Maximum number of pieces that one int64 can encode as bits."""


def split_by_region(pieces: Content) -> Content:
    """The same content, split so that any two pieces cover equal or disjoint elements."""
    equal_masks = all(np.array_equal(piece.mask, pieces[0].mask) for piece in pieces)
    if equal_masks or len(pieces) > _MAX_ENCODED:  # sound: splitting only helps to join cases
        return pieces
    codes = sum(piece.mask.astype(np.int64) << number for number, piece in enumerate(pieces))
    return tuple(
        evolve(piece, mask=codes == code)
        for code in np.unique(codes).tolist()
        for number, piece in enumerate(pieces)
        if code >> number & 1
    )


def union_pieces(one: Piece, two: Piece) -> Piece | None:
    """Two pieces with disjoint elements and equal symbolic formulas as one piece; None if the formulas differ."""
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
