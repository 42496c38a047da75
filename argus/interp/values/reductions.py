"""Reductions and scans of registers along an axis: values in coordinate order, and the tags of the results.

A tag name that is constant along the axis stays; one that varies becomes the set of all elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import cast

import numpy as np
from attrs import define, frozen

from argus.core.elementwise import ELEMENT_OPS
from argus.core.ir import Fold, static
from argus.core.layout import TV
from argus.core.walk import evaluate
from argus.interp.compiled_kernel import first_where
from argus.interp.machine.waves import Wave
from argus.interp.memory.cells import BOTTOM, NUMBER, OPAQUE, PLAIN, TOP, AnyArray, BoolArray, IntArray
from argus.interp.memory.trace import SourceCells
from argus.interp.state import Block, coordinates
from argus.interp.values import states
from argus.interp.values.sets import MISSING, MIXED, PADDED, UNTRACKED, How, is_single
from argus.interp.violation import Event

_HOW: Mapping[str, How] = {
    "add": "sum",
    "mul": "sum",
    "max": "extremum",
    "min": "extremum",
    "max_nan": "extremum",
    "min_nan": "extremum",
}
"""A product of a row counts its elements, as a sum does."""


@frozen(eq=False)
class Plan:
    """The source cells of each target register, in order of the coordinate along the axis; -1 for none.

    cells: (thread times registers plus register, element). row: the other coordinates, as one number.
    """

    cells: IntArray
    row: IntArray


def fold(block: Block, wave: Wave, stmt: Fold, event: Event) -> None:
    """Reduce or scan this wave's elements and assign the target's registers."""
    source, target = stmt.source.buffer, stmt.target.buffer
    layout = cast(TV, target.layout)
    flying = block.check_in_flight(wave, source, event, "read")
    block.check_in_flight(wave, target, event, "written")
    found = plan(stmt, block.launch.prepared.unit)
    registers = layout.values.size()
    if wave.first >= layout.threads.size():
        return  # no thread of this wave holds an element of the target
    rows = slice(wave.first * registers, min(wave.last, layout.threads.size()) * registers)
    cells, held, made = found.cells[rows], block.cells(source), block.cells(target)
    if made.values is not None and held.values is not None:
        made.values[rows] = _values(stmt, cells, held.values)
    if made.marks is not None and held.marks is not None:
        marks = np.where(cells >= 0, TOP if flying else held.marks[cells], MISSING)
        made.marks[rows] = _Marks(block, stmt, event, rows.start, registers).run(cells, marks, found.row[rows])
    block.drop_sums(wave, target)
    journal = block.launch.journal
    if journal is not None:
        at = np.arange(rows.start, rows.stop, dtype=np.int64).reshape(-1, registers)
        taken = SourceCells(source, held, cells[:, 0].reshape(at.shape), journal.moment)
        journal.record_elementwise(
            event, block.base + wave.first, SourceCells(target, made, at, journal.moment), (taken,)
        )


def _values(stmt: Fold, cells: IntArray, values: AnyArray) -> AnyArray:
    last = (cells >= 0).sum(axis=1) - 1
    if stmt.op == "last":
        return values[np.take_along_axis(cells, last[:, None], axis=1)[:, 0]]
    meaning = ELEMENT_OPS[stmt.op].meaning
    total: AnyArray = values[cells[:, 0]]
    for column in range(1, cells.shape[1]):
        there = cells[:, column] >= 0
        total = np.where(there, meaning(total, values[cells[:, column]]), total)
    return total


@define(eq=False)
class _Marks:
    """The marks of one reduction by one wave: one row of element marks per target, MISSING where there is none."""

    block: Block
    stmt: Fold
    event: Event
    first: int
    registers: int

    def run(self, cells: IntArray, marks: IntArray, row: IntArray) -> IntArray:
        bottom = marks == BOTTOM
        if bottom.any():
            self._report("I38", f"`{self.stmt.source.buffer.name}` is used while uninitialised", bottom)
            marks = np.where(bottom, TOP, marks)
        if self.stmt.op == "last":
            last = (cells >= 0).sum(axis=1) - 1
            return np.take_along_axis(marks, last[:, None], axis=1)[:, 0]
        result = self._states(marks)
        several = np.flatnonzero(result >= 0)
        if several.size:
            result[several] = self._records(marks[several], marks, row, several)
        return result

    def _states(self, marks: IntArray) -> IntArray:
        """The state of each target; PLAIN where it depends on elements with records."""
        kinds, back = np.unique(np.minimum(marks, PLAIN), axis=0, return_inverse=True)
        found = np.array([self._state(kind) for kind in kinds], np.int64)
        return found[back.reshape(-1)]

    def _state(self, kinds: IntArray) -> int:
        """The state of a reduction of elements in these states."""
        present = kinds[kinds != MISSING]
        for state in (TOP, OPAQUE):
            if (present == state).any():
                return state
        total, *rest = present[:2].tolist() if (present == present[0]).all() else present.tolist()
        for state in rest:
            made = states.outcome(self.stmt.op, total, state)
            total = min(made, PLAIN)
        return int(total)

    def _records(self, marks: IntArray, every: IntArray, row: IntArray, targets: IntArray) -> IntArray:
        """The record of each target whose elements have some."""
        launch, how = self.block.launch, _HOW[self.stmt.op]
        records = launch.records
        padded = PADDED * self._padded(marks).astype(np.int64)
        data = marks >= 0
        columns: dict[str, IntArray] = {}
        for name, column in self._held(every).items():
            own = column[targets]
            flags = padded | MIXED * (data & (own == MISSING)).any(axis=1)
            if self._varies(name, column, row):
                columns[name] = self._reduced(how, own, flags)
            elif self._undecided(column, every) and name not in launch.prepared.stored_names:
                columns[name] = np.full(targets.size, UNTRACKED, np.int64)
            else:
                columns[name] = found = own.max(axis=1)
                several = ((own != MISSING).sum(axis=1) > 1) | (flags & MIXED > 0)
                sets = several & (found != MISSING) & ~is_single(found)
                found[sets] = self._reduced(how, own[sets], flags[sets])
        if not columns:
            return np.full(targets.size, PLAIN, np.int64)
        sums = np.any(records.summed(np.maximum(marks, PLAIN)), axis=1)
        summed: BoolArray = np.array(sums | (how == "sum"), np.bool_)
        alone = ((marks >= 0).sum(axis=1) == 1) & (marks.max(axis=1) > 0)
        kept = marks.max(axis=1)
        for name, column in columns.items():
            alone &= records.get(name, kept) == column
        alone &= records.summed(kept) == summed
        new = ~alone
        count = int(new.sum())
        if count:
            first = records.add(count, {name: column[new] for name, column in columns.items()}, summed[new])
            kept[new] = np.arange(first, first + count, dtype=np.int64)
        return kept

    def _padded(self, marks: IntArray) -> BoolArray:
        """Which targets reduce padding that is not neutral together with values."""
        found = np.zeros(len(marks), np.bool_)
        for state in np.unique(marks[(marks < NUMBER) & (marks != MISSING)]).tolist():
            if not states.is_neutral(self.stmt.op, state):
                found |= (marks == state).any(axis=1)
        return found

    def _varies(self, name: str, column: IntArray, row: IntArray) -> bool:
        """Whether a name varies within a row, for this wave's elements or those of an earlier execution."""
        launch, key = self.block.launch, (self.stmt, name)
        if key in launch.varying:
            return True
        there = column != MISSING
        low = np.where(there, column, np.iinfo(np.int64).max).min(axis=1)
        high = column.max(axis=1)
        _, back = np.unique(row, return_inverse=True)
        lows = np.full(int(back.max()) + 1, np.iinfo(np.int64).max)
        highs = np.full(lows.shape, MISSING)
        np.minimum.at(lows, back, low)
        np.maximum.at(highs, back, high)
        varies = bool((lows < highs).any())
        if varies:
            launch.varying.add(key)
        return varies

    def _held(self, every: IntArray) -> dict[str, IntArray]:
        """The components of all elements, for names that some of them have."""
        records, data = self.block.launch.records, np.maximum(every, PLAIN)
        found = {name: np.where(every > 0, records.get(name, data), MISSING) for name in records.names}
        return {name: column for name, column in found.items() if (column != MISSING).any()}

    @staticmethod
    def _undecided(column: IntArray, every: IntArray) -> bool:
        """Whether padding leaves one element per row, all with one component: it may be that of the row or the axis."""
        there = column != MISSING
        if not is_single(column[there]).all():
            return False
        many = there.sum(axis=1)
        padded = (many == 1) & ((every != MISSING).sum(axis=1) > 1)
        if not padded.any() or (many > 1).any():
            return False
        return np.unique(column[padded].max(axis=1)).size == 1

    def _reduced(self, how: How, column: IntArray, flags: IntArray) -> IntArray:
        """The set of each target, with flags."""
        sets = self.block.launch.records.sets
        known: dict[tuple[bytes, int], int] = {}
        found = np.full(len(column), UNTRACKED, np.int64)
        for at, components in enumerate(column):
            key = components.tobytes(), int(flags[at])
            if key not in known:
                known[key] = sets.reduced(components.tolist(), how, key[1])
            found[at] = known[key]
        return found

    def _report(self, code: str, message: str, where: BoolArray) -> None:
        thread, value = divmod(self.first + first_where(where)[0], self.registers)
        target = self.stmt.target.buffer
        element = coordinates(target, thread, value)
        name = self.stmt.source.buffer.name
        self.block.report(code, message, self.event, thread=thread, value=value, element=element, buffer=name)


@lru_cache(maxsize=512)
def plan(stmt: Fold, unit: int) -> Plan:
    """The plan of a reduction. unit: threads of a warp."""
    held, target = cast(TV, stmt.source.buffer.layout), cast(TV, stmt.target.buffer.layout)
    shape = tuple(static(extent) for extent in stmt.source.shape)
    row, along = _numbered(stmt, held, shape)
    wanted, own = _wanted(stmt, target, shape)
    elements, group = held.elements(), 1 if stmt.within == "thread" else unit
    lists: list[list[int]] = []
    for first in range(0, len(elements), group):
        rows = _rows(elements, row, along, slice(first, first + group))
        for thread in range(first, min(first + group, len(wanted))):
            for which, upto in zip(wanted[thread].tolist(), own[thread].tolist(), strict=True):
                lists.append([cell for at, cell in rows[which] if at <= upto])
    cells = np.full((len(lists), max(map(len, lists))), -1, np.int64)
    for at, found in enumerate(lists):
        cells[at, : len(found)] = found
    return Plan(cells, wanted.reshape(-1))


def _rows(elements: IntArray, row: IntArray, along: IntArray, threads: slice) -> dict[int, list[tuple[int, int]]]:
    """Per row, the elements that these threads hold: pairs of coordinate along the axis and cell, sorted."""
    registers = elements.shape[1]
    own = elements[threads].reshape(-1)
    numbers, where = np.unique(own, return_index=True)
    rows: dict[int, list[tuple[int, int]]] = {}
    for number, at in zip(numbers.tolist(), where.tolist(), strict=True):
        if row[number] >= 0:
            rows.setdefault(int(row[number]), []).append((int(along[number]), threads.start * registers + at))
    return {which: sorted(found) for which, found in rows.items()}


def _numbered(stmt: Fold, held: TV, shape: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """For each element of the source's tile, its row in the view (-1 outside) and its coordinate along the axis."""
    grid = np.indices(shape, dtype=np.int64)
    number, below = np.zeros(shape, np.int64), 1
    for extent, at in zip(held.tile, stmt.source.at, strict=True):
        number, below = number + np.asarray(evaluate(at, {}, tuple(grid))) * below, below * extent
    row, along = np.full(prod(held.tile), -1, np.int64), np.zeros(prod(held.tile), np.int64)
    row[number.ravel()] = _row(tuple(grid), shape, stmt.axis).ravel()
    along[number.ravel()] = grid[stmt.axis].ravel()
    return row, along


def _row(axes: tuple[IntArray, ...], shape: tuple[int, ...], axis: int) -> IntArray:
    number, below = np.zeros(axes[axis].shape, np.int64), 1
    for other, extent in enumerate(shape):
        if other != axis:
            number, below = number + axes[other] * below, below * extent
    return number


def _wanted(stmt: Fold, target: TV, shape: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """For each register of the target, the row that it reduces, and up to which coordinate along the axis."""
    axes, size = target.coordinates(), (target.threads.size(), target.values.size())
    dropped = len(target.tile) < len(shape)
    number, below, position = np.zeros(size, np.int64), 1, 0
    for other, extent in enumerate(shape):
        if other == stmt.axis:
            position += 0 if dropped else 1
            continue
        number, below, position = number + axes[position] * below, below * extent, position + 1
    upto = axes[stmt.axis] if stmt.keep == "prefix" else np.full(size, shape[stmt.axis])
    return np.broadcast_to(number, size), np.broadcast_to(upto, size)
