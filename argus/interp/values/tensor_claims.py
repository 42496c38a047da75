"""Checks claims about whole tensors (I4) after all blocks have run, and assigns tags to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

import numpy as np
from attrs import define

from argus.core.index import Index, Node
from argus.core.ir import Assert, Buffer, Strided, View, WrittenOnce, whole
from argus.core.walk import evaluate
from argus.interp.compiled_kernel import grid
from argus.interp.memory.cells import BOTTOM, MISSING, NAN, TOP, AnyArray, BoolArray, IntArray, is_padding, padding_of
from argus.interp.memory.trace import FaultContext, spots
from argus.interp.memory.views import is_whole
from argus.interp.state import Launch
from argus.interp.values.sets import UNTRACKED, is_set, is_unknown
from argus.interp.violation import END, Event, not_built


@define(eq=False)
class Elements:
    """The elements of a view of a tensor. coordinates: in the view; at: in the tensor; cell: of each element."""

    buffer: Buffer
    shape: tuple[int, ...]
    coordinates: tuple[IntArray, ...]
    at: tuple[IntArray, ...]
    cell: IntArray

    def only(self, mask: BoolArray) -> Elements:
        """The elements at which the mask is set."""
        coordinates, at = (tuple(axis[mask] for axis in axes) for axes in (self.coordinates, self.at))
        return Elements(self.buffer, self.shape, coordinates, at, self.cell[mask])


def number(launch: Launch, node: Index) -> int:
    """The value of an expression of sizes."""
    return int(cast(int, evaluate(node, launch.sizes)))


def elements(launch: Launch, view: View) -> Elements:
    """The elements of a view that lie in its tensor."""
    layout = view.buffer.layout
    assert isinstance(layout, Strided), view.buffer.name
    shape = tuple(number(launch, extent) for extent in view.shape)
    coordinates = grid(shape)
    at = tuple(evaluate_at(node, launch, coordinates) for node in view.at)
    inside = evaluate_at(view.where, launch, coordinates).astype(np.bool_)
    for axis, extent in zip(at, view.buffer.shape, strict=True):
        inside &= (axis >= 0) & (axis < number(launch, extent))
    coordinates, at = tuple(x[inside] for x in coordinates), tuple(x[inside] for x in at)
    cell = np.zeros(int(inside.sum()), np.int64)
    for axis, stride in zip(at, layout.strides, strict=True):
        cell += axis * number(launch, stride)
    return Elements(view.buffer, shape, coordinates, at, cell)


def evaluate_at(node: Node, launch: Launch, coordinates: Sequence[IntArray]) -> IntArray:
    """The values of an expression at these coordinates."""
    value = np.asarray(evaluate(node, launch.sizes, coordinates, launch.prepared.integers))
    return np.array(np.broadcast_to(value, coordinates[0].shape if coordinates else (1,)))


def written_once(launch: Launch, stmt: Assert, claim: WrittenOnce, *, complete: bool) -> None:
    """Check one claim; complete: all blocks have run, so that elements without a write are violations."""
    buffer = claim.view.buffer
    if buffer not in launch.written:
        raise not_built(f"claim that `{buffer.name}` is written once", stmt)
    check = _WriteCheck(launch, stmt, "I4", elements(launch, claim.view))
    check.check(claim, complete=complete)


class ElementReports:
    """Reports elements of a tensor that violate a claim, with the thread and the statement that wrote them."""

    def __init__(self, launch: Launch, stmt: Assert, code: str, every: Elements) -> None:
        buffer = every.buffer
        written = launch.written[buffer]
        self.launch, self.buffer, self.code, self.every, self.written = launch, buffer, code, every, written
        self.claimed = Event(stmt, (), 0, END, (), 0)
        cells = launch.tensors[buffer].marks
        assert cells is not None
        self.marks = cells[every.cell]
        self.writer = written.first[every.cell]

    def report(self, bad: BoolArray, what: str, facts: tuple[tuple[str, str], ...] = ()) -> None:
        """Report the first of these elements, at the claim. what: the end of a sentence about it."""
        at = int(bad.argmax())
        cell = int(self.every.cell[at])
        number = int(self.writer[at])
        if number < 0:
            event, thread, value, other = self.claimed, 0, None, None
        else:
            other, registers = self.launch.writes[number]
            thread, value = divmod(int(self.written.first_lane[cell]), registers)
            event = Event(self.claimed.stmt, other.block, other.wave, END, other.iteration, other.epoch)
        self._emit(event, other, bad, what, (thread, value), None, facts)

    def _emit(
        self,
        event: Event,
        other: Event | None,
        bad: BoolArray,
        what: str,
        holder: tuple[int, int | None],
        other_thread: int | None,
        facts: tuple[tuple[str, str], ...],
    ) -> None:
        """Report the first faulty element."""
        at = int(bad.argmax())
        element = tuple(int(axis[at]) for axis in self.every.at)
        kept = self.launch.reporter.report(
            self.code,
            f"element {_tuple(element)} of `{self.buffer.name}` {what}",
            event,
            thread=holder[0],
            value=holder[1],
            element=element,
            buffer=self.buffer.name,
            other=other,
            other_thread=other_thread,
            facts=facts,
            related=() if other is None or self.code != "I39" else ((other.stmt, "stored here"),),
        )
        journal = self.launch.journal
        if kept and journal is not None:
            tensor = self.launch.tensors[self.buffer]
            alike = spots(self.buffer, tensor, self.every.cell[bad], journal.moment)
            fault = self.code, event.stmt, None if other is None else other.stmt
            journal.contexts[fault] = FaultContext(journal.moment, lambda _: tensor, 0, alike=alike)


class _WriteCheck(ElementReports):
    """Checks that each claimed element of a tensor was written once, with the claimed record."""

    def check(self, claim: WrittenOnce, *, complete: bool) -> None:
        """Report the elements that violate the claim (I4)."""
        twice = self.written.second[self.every.cell] >= 0
        if twice.any():
            self._report_twice(twice)
            return
        never = self.writer < 0
        claimed = evaluate_at(claim.where, self.launch, self.every.coordinates).astype(np.bool_)
        if (~never & ~claimed).any():
            self.report(~never & ~claimed, "is written, but the claim excludes it")
        if complete and (never & claimed).any():
            self.report(never & claimed, "is never written")
        empty = self.buffer in self.launch.prepared.product_claims  # that claim covers elements that are empty sums
        padded = is_padding(self.marks) & ~(empty & (self.marks == padding_of(0)))
        spoiled = ~never & (np.isin(self.marks, (BOTTOM, TOP, NAN)) | padded)
        if spoiled.any():
            at = int(spoiled.argmax())
            self.report(
                spoiled, "holds padding" if padded[at] else "is NaN" if self.marks[at] == NAN else "holds garbage"
            )
        self._check_records(claim, ~never & (self.marks >= 0))

    def _check_records(self, claim: WrittenOnce, checked: BoolArray) -> None:
        wanted = {name: evaluate_at(node, self.launch, self.every.coordinates) for name, node in claim.record}
        wrong = np.zeros(checked.shape, np.bool_)
        records = self.launch.records
        for name, column in wanted.items():
            found = records.plain(name, self.marks)
            wrong |= checked & (found != column) & ~is_unknown(found)
        if not wrong.any():
            return
        at = int(wrong.argmax())
        for name in wanted:
            component = records.get(name, self.marks[at : at + 1])
            if is_set(component).any():
                self.launch.suspicions.explain(name, records.sets.members(int(component[0])))
        expected = ", ".join(f"{name}={int(column[at])}" for name, column in wanted.items())
        record = records.of(int(self.marks[at]))
        held = {name: record[name] for name in wanted if record.get(name, MISSING) != MISSING}
        found = ", ".join(f"{name}={records.component_text(value)}" for name, value in held.items()) or "no tags"
        self.report(wrong, f"holds {found}, expected {expected}", (("expected", expected), ("found", found)))

    def _report_twice(self, bad: BoolArray) -> None:
        at = int(bad.argmax())
        cell = int(self.every.cell[at])
        one, one_registers = self.launch.writes[int(self.written.first[cell])]
        two, registers = self.launch.writes[int(self.written.second[cell])]
        other_thread = int(self.written.first_lane[cell]) // one_registers
        thread, value = divmod(int(self.written.second_lane[cell]), registers)
        facts = (
            ("first write", f"block {_tuple(one.block)}, thread {other_thread}"),
            ("second write", f"block {_tuple(two.block)}, thread {thread}"),
        )
        event = Event(self.claimed.stmt, two.block, two.wave, END, two.iteration, two.epoch)
        self._emit(event, one, bad, "is written twice", (thread, value), other_thread, facts)


def _tuple(numbers: Sequence[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def tag(launch: Launch, view: View, names: tuple[tuple[str, Index], ...], *, more: bool = False) -> None:
    """Assign tag records to the initialised elements of a view of a tensor. more: keep the names they already have.

    If the view contains an element twice, or padding, the names become untracked: such an element has no unique value.
    """
    marks = launch.tensors[view.buffer].marks
    if marks is None:
        return
    every = elements(launch, view)
    values = marks[every.cell] != BOTTOM if more else marks[every.cell] >= 0
    cells, where = every.cell[values], np.flatnonzero(values)
    several = False
    if not is_whole(view):
        own, first = np.unique(cells, return_index=True)
        several = own.size < cells.size or every.cell.size < prod(every.shape)
        cells, where = (own, where[first]) if several else (cells, where)
    if not cells.size:
        return
    coordinates = tuple(axis[where] for axis in every.coordinates)
    columns = {name: evaluate_at(node, launch, coordinates) for name, node in names}
    if several:
        columns = {name: np.full(cells.shape, UNTRACKED, np.int64) for name in columns}
    if more:
        old = np.maximum(marks[cells], 0)
        columns = {name: launch.records.get(name, old) for name in launch.records.names} | columns
    first = launch.records.add(cells.size, columns)
    marks[cells] = np.arange(first, first + cells.size, dtype=np.int64)


def array_of(launch: Launch, buffer: Buffer) -> AnyArray:
    """A tensor's values in its shape; the run must compute values."""
    values = launch.tensors[buffer].values
    assert values is not None, buffer.name
    every = elements(launch, whole(buffer))
    return values[every.cell].reshape(every.shape)
