"""Atomic reductions to memory: stores that combine with the target's elements."""

from __future__ import annotations

from functools import partial

import numpy as np

from argus.core.ir import Copy
from argus.interp.compiled_kernel import first_where
from argus.interp.memory.cells import BOTTOM, AnyArray, BoolArray, Cells, IntArray
from argus.interp.memory.views import Place
from argus.interp.state import Block
from argus.interp.values import states
from argus.interp.values.sets import is_single
from argus.interp.violation import Event


class Part:
    """The threads of a place that belong to one wave."""

    __slots__ = ("address", "first", "inside", "out_of_bounds")

    def __init__(self, address: IntArray, inside: BoolArray | None, first: int, *, out_of_bounds: bool) -> None:
        self.address, self.inside, self.first, self.out_of_bounds = address, inside, first, out_of_bounds

    @classmethod
    def of(cls, place: Place, rows: slice) -> Part:
        """The threads `rows` of a place."""
        inside = None if place.inside is None else place.inside[rows]
        if inside is not None and inside.all():
            inside = None
        return cls(place.address[rows], inside, rows.start, out_of_bounds=place.out_of_bounds is not None)


def combine(
    block: Block,
    event: Event,
    stmt: Copy,
    cells: Cells,
    target: Part,
    staged: tuple[AnyArray | None, IntArray | None],
) -> None:
    """Combine the elements read with the target's: values in an arbitrary order, marks by the operation's rule."""
    assert stmt.combine is not None
    inside = np.ones(target.address.shape, np.bool_) if target.inside is None else target.inside
    at = target.address[inside]
    values, marks = staged
    if cells.values is not None and values is not None:
        meaning = {"add": np.add, "max": np.maximum, "min": np.minimum}[stmt.combine]
        meaning.at(cells.values, at, values[inside].astype(cells.values.dtype))
    if cells.marks is not None and marks is not None:
        cells.marks[at] = _combine_marks(block, event, stmt, (cells.marks[at], marks[inside]), inside)


def _combine_marks(
    block: Block, event: Event, stmt: Copy, sides: tuple[IntArray, IntArray], inside: BoolArray
) -> IntArray:
    """The marks of the results; reports uninitialised targets (I38)."""
    assert stmt.combine is not None
    old, moved = sides
    name, records = stmt.target.buffer.name, block.launch.records
    if (old == BOTTOM).any():
        _report(block, event, "I38", f"`{name}` is added to while uninitialised", old == BOTTOM, inside)
    kinds = states.outcomes(stmt.combine, old, moved)
    found = np.where(kinds == states.LEFT, old, np.where(kinds == states.RIGHT, moved, kinds))
    number = (kinds == states.BOTH) & ((old < 0) | (moved < 0))
    found[number] = np.maximum(old, moved)[number]
    both = (kinds == states.BOTH) & (old >= 0) & (moved >= 0)
    if both.any():
        _suspect(block, event, stmt, (old, moved), both, inside)
        found[both] = records.combined("sum" if stmt.combine == "add" else "extremum", old[both], moved[both])
    return found


def _suspect(
    block: Block, event: Event, stmt: Copy, sides: tuple[IntArray, IntArray], both: BoolArray, inside: BoolArray
) -> None:
    """Note tags that do not agree (I2)."""
    records = block.launch.records
    for name in records.names:
        one, other = (records.get(name, side) for side in sides)
        differs = both & (one != other) & is_single(one) & is_single(other)
        if differs.any():
            message = f"elements combined in `{stmt.target.buffer.name}` disagree on tag `{name}`"
            report = partial(_report, block, event, "I2", message, differs, inside, block.launch.moment)
            at = first_where(differs)
            block.launch.suspicions.note(name, stmt, (int(one[at]), int(other[at])), report)


def _report(
    block: Block,
    event: Event,
    code: str,
    message: str,
    where: BoolArray,
    inside: BoolArray,
    moment: int | None = None,
) -> None:
    lane, value = first_where(_spread(where, inside))
    thread = block.waves[event.wave].first + lane
    assert isinstance(event.stmt, Copy)
    block.report(code, message, event, thread=thread, value=value, buffer=event.stmt.target.buffer.name, moment=moment)


def _spread(where: BoolArray, inside: BoolArray) -> BoolArray:
    found = np.zeros(inside.shape, np.bool_)
    found[inside] = where
    return found
