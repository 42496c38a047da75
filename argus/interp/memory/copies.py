"""Copies by waves: addresses are fixed at issue, reads and writes follow; checks bounds, vector widths and states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from argus.core.index import Symbol
from argus.core.index_text import show
from argus.core.ir import Buffer, Copy, Stmt, Strided
from argus.interp.compiled_kernel import CopyPlan, Side, first_where, registers_of
from argus.interp.machine.waves import Operation, SharedAccess, Wave
from argus.interp.memory.atomic_stores import Part, combine
from argus.interp.memory.cells import BOTTOM, TOP, AnyArray, Cells, IntArray, padding_of, poison
from argus.interp.memory.trace import Journal, SourceCells
from argus.interp.memory.views import MISALIGNED, SCATTERED, STRADDLING, Locator, Place
from argus.interp.state import Block, coordinates
from argus.interp.values import contributions
from argus.interp.values.stored_sums import with_sets
from argus.interp.violation import Event

Staged = tuple[AnyArray | None, IntArray | None]


def copy(block: Block, wave: Wave, stmt: Copy, event: Event) -> None:
    """Issue a copy: locate its cells, check them, and append the operation to its queue."""
    plan = block.launch.prepared.copy(stmt)
    rows = slice(wave.first, min(wave.last, stmt.by.threads.size()))
    if rows.start >= rows.stop:
        return
    source, target = plan.source.locate(wave.env), plan.target.locate(wave.env)
    for side, place in ((plan.source, source), (plan.target, target)):
        check_place(block, wave, side, place, rows, event)
    mover = Mover(block, stmt, event, plan, (Part.of(source, rows), Part.of(target, rows)))
    operation = Operation(
        event, stmt, mover.read, mover.write, _accesses(block, stmt, plan, (source, target), rows, event)
    )
    if block.launch.tags:
        block.accesses.extend(operation.accesses)
        note_stores(block, plan, (source, target), rows, event)
    _issue(block, wave, stmt, plan, operation, mover)


class Mover:
    """The read and the write of one copy by one wave. into: the block whose memory contains the target."""

    def __init__(self, block: Block, stmt: Copy, event: Event, plan: CopyPlan, parts: tuple[Part, Part]) -> None:
        self.block, self.stmt, self.event, self.plan = block, stmt, event, plan
        self.into = block
        self.source, self.target = parts
        self.moment = 0
        self.env = dict(block.waves[event.wave].env)  # an asynchronous copy may read after the loop around it

    def read(self) -> Staged:
        """The source's elements now, with padding outside the tensor."""
        buffer = self.plan.source.buffer
        cells = self.block.cells(buffer)
        self.moment = self.block.launch.moment
        at, inside = self.source.address, self.source.inside
        values = None if cells.values is None else cells.values[at]
        held = cells.marks
        if held is not None and (self.block.launch.records_sets or self.stmt.combine is not None):
            held = self._with_sets(buffer, held)
        marks = None if held is None else held[at]
        if inside is not None:
            fill = cast(float, poison(buffer.dtype)) if self.stmt.edge is None else self.stmt.edge
            if values is not None:
                values[~inside] = fill
            if marks is not None:
                marks[~inside] = TOP if self.source.out_of_bounds else padding_of(fill)
        if marks is not None and buffer.space != "shared":
            self._check_initialised(buffer, marks)
        return values, marks

    def _with_sets(self, buffer: Buffer, marks: IntArray) -> IntArray:
        """The marks of the source, with the sets that its sums range over."""
        if buffer.space != "register":
            return marks
        wave, registers = self.block.waves[self.event.wave], registers_of(buffer)[1]
        rows = slice(wave.first * registers, wave.last * registers)
        found = marks.copy()
        found[rows] = with_sets(self.block, wave, buffer, marks[rows].reshape(-1, registers)).reshape(-1)
        return found

    def write(self, staged: Staged) -> None:
        """Store elements that were read to the target, or combine them with it."""
        cells = self.into.cells(self.plan.target.buffer)
        if self.stmt.combine is not None:
            combine(self.block, self.event, self.stmt, cells, self.target, staged)
        else:
            self._replace(cells, staged)
        if self.block.launch.journal is not None:
            self._record(self.block.launch.journal, cells)

    def _replace(self, cells: Cells, staged: Staged) -> None:
        at, inside = self.target.address, self.target.inside
        for held, moved in ((cells.values, staged[0]), (cells.marks, staged[1])):
            if held is None or moved is None:
                continue
            if inside is None:
                held[at] = moved
            else:
                held[at[inside]] = moved[inside]

    def _record(self, journal: Journal, cells: Cells) -> None:
        """Record the write, with the source cell of each element."""
        source = self.plan.source.buffer
        taken = SourceCells(source, self.block.cells(source), self.source.address, self.moment, self.source.inside)
        wrote = SourceCells(self.plan.target.buffer, cells, self.target.address, journal.moment, self.target.inside)
        journal.record_elementwise(self.event, self.block.base + self.target.first, wrote, (taken,))

    def _check_initialised(self, buffer: Buffer, marks: IntArray) -> None:
        bottom = marks == BOTTOM
        if self.target.inside is not None:
            bottom &= self.target.inside
        if not bottom.any():
            return
        lane, value = first_where(bottom)
        wave = self.block.waves[self.event.wave]
        element = _element(self.env, self.plan.source, wave.first + lane, value)
        self.block.report(
            "I38",
            f"`{buffer.name}` is copied while uninitialised",
            self.event,
            thread=wave.first + lane,
            value=value,
            element=element,
            buffer=buffer.name,
        )


def _issue(block: Block, wave: Wave, stmt: Copy, plan: CopyPlan, operation: Operation, mover: Mover) -> None:
    queue = stmt.atom.completion.queue
    source, target = plan.source.buffer, plan.target.buffer
    if source.space == "register":
        flying = block.check_in_flight(wave, source, operation.event, "read")
        values, marks = mover.read()
        if flying and marks is not None:
            marks = np.full_like(marks, TOP)
        operation.staged = (values, marks)
    if target.space == "register":
        block.drop_sums(wave, target)
        same = [other for other in wave.pending_loads.get(target, ()) if other.stmt.atom.completion.queue == queue]
        if not same:
            block.check_in_flight(wave, target, operation.event, "written")
    if queue is None:
        operation.complete()
        for access in operation.accesses:
            access.drained, access.over = wave.arrivals, access.event.path
        return
    if target.space == "register":
        wave.pending_loads.setdefault(target, []).append(operation)
    wave.queue(queue).issue(operation)
    if block.launch.adversary.schedule.style == "early":
        wave.queue(queue).complete()


def _accesses(
    block: Block, stmt: Copy, plan: CopyPlan, places: tuple[Place, Place], rows: slice, event: Event
) -> tuple[SharedAccess, ...]:
    if not block.launch.tags:
        return ()
    sides = ((plan.source, places[0], False), (plan.target, places[1], True))
    return tuple(
        SharedAccess(event, side.buffer, writes, place.cell_set(rows.start, rows.stop), place, direct=stmt.atom.direct)
        for side, place, writes in sides
        if side.buffer.space == "shared"
    )


def note_stores(block: Block, plan: CopyPlan, places: tuple[Place, Place], rows: slice, event: Event) -> None:
    """Record stores to tensors with claims, and check claims about their products."""
    place = places[1]
    if plan.target.buffer in block.launch.prepared.product_claims:
        contributions.check_store(block, block.waves[event.wave], plan, place, rows, event)
    written = block.launch.written.get(plan.target.buffer)
    if written is None:
        return
    registers = place.address.shape[1]
    block.launch.writes.append((event, registers))
    number = len(block.launch.writes) - 1
    first, last = block.base + rows.start, block.base + rows.stop
    lanes = np.arange(first * registers, last * registers, dtype=np.int64)
    cells = place.address[rows].reshape(-1)
    if place.inside is not None:
        inside = place.inside[rows].reshape(-1)
        cells, lanes = cells[inside], lanes[inside]
    held = block.cells(plan.source.buffer).marks
    if plan.source.buffer.space == "register" and held is not None:
        at = places[0].address.reshape(-1)[lanes - block.base * registers]
        each = block.launch.records.first_of_equal((cells, lanes // registers // block.launch.prepared.unit), held[at])
        cells, lanes = cells[each], lanes[each]
    written.note(number, cells, lanes)


_WHY = {
    MISALIGNED: "starts at an address that is not a multiple of {align} bytes",
    SCATTERED: "covers elements that are not contiguous",
    STRADDLING: "lies partly inside the tensor and partly outside",
}


def check_place(block: Block, wave: Wave, side: Side, place: Place, rows: slice, event: Event) -> None:
    """Report accesses out of bounds (I37), misaligned or split vectors (I19), and invalid indirect indices (I27)."""
    if side.locator is not None and side.locator.indirect_axes:
        _check_indirect(block, wave, side.locator, rows, event)
    if place.out_of_bounds is not None and (beyond := place.out_of_bounds[rows]).any():
        lane, value = first_where(beyond)
        element = _element(wave.env, side, wave.first + lane, value)
        extents = [int(block.scalars.number(e, wave.env, 0, event.stmt)) for e in side.buffer.shape]
        block.report(
            "I37",
            f"access outside `{side.buffer.name}`: element {_tuple(element)} of extents {_tuple(extents)}",
            event,
            thread=wave.first + lane,
            value=value,
            element=element,
            buffer=side.buffer.name,
            facts=_reached_element(block, wave, side, event.stmt, element),
        )
    if place.vector_faults is not None and (vector_faults := place.vector_faults[rows]).any():
        assert side.locator is not None
        lane, run = first_where(vector_faults != 0)
        access = side.locator.access
        why = _WHY[int(vector_faults[lane, run])].format(align=max(access.align, access.begins))
        whole = place.address.shape[1] % access.vector == 0 and access.together == 1
        value = run * access.vector if whole else run
        block.report(
            "I19",
            f"an access of {access.vector} elements of `{side.buffer.name}` {why}",
            event,
            thread=wave.first + lane,
            value=value,
            element=_element(wave.env, side, wave.first + lane, value),
            buffer=side.buffer.name,
        )


def _check_indirect(block: Block, wave: Wave, locator: Locator, rows: slice, event: Event) -> None:
    """Report an index that is read from memory and is out of bounds (I27)."""
    buffer = locator.view.buffer
    element = locator.coordinates(wave.env, rows.start, 0)
    for axis in locator.indirect_axes:
        extent = int(block.scalars.number(buffer.shape[axis], wave.env, 0, event.stmt))
        if not 0 <= element[axis] < extent:
            name = show(locator.view.at[axis])
            block.report(
                "I27",
                f"index {element[axis]} along axis {axis} of `{buffer.name}` is out of bounds (extent {extent}): "
                f"it is `{name}`",
                event,
                thread=rows.start,
                value=0,
                element=element,
                buffer=buffer.name,
                facts=((name, str(element[axis])),),
            )


def _reached_element(
    block: Block, wave: Wave, side: Side, stmt: Stmt, element: tuple[int, ...]
) -> tuple[tuple[str, str], ...]:
    """The element that a buffer instruction reaches beyond the end of a row: only the tensor's end limits its range."""
    layout = side.buffer.layout
    if not isinstance(stmt, Copy) or stmt.atom.edge != "range_zero" or not isinstance(layout, Strided):
        return ()
    extents, strides = (
        [int(block.scalars.number(node, wave.env, 0, stmt)) for node in nodes]
        for nodes in (side.buffer.shape, layout.strides)
    )
    rest = sum(at * stride for at, stride in zip(element, strides, strict=True))
    found: list[int] = []
    for stride in strides:
        found.append(rest // max(1, stride))
        rest %= max(1, stride)
    if any(not 0 <= at < extent for at, extent in zip(found, extents, strict=True)):
        return ()
    return (("there", f"element {_tuple(found)}: the range of `{stmt.atom}` ends with the tensor, not with its rows"),)


def _tuple(numbers: tuple[int, ...] | list[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def _element(env: Mapping[Symbol, int], side: Side, thread: int, value: int) -> tuple[int, ...]:
    """The buffer coordinates of the element that one register of a copy holds."""
    if side.locator is not None:
        return side.locator.coordinates(env, thread, value)
    registers = registers_of(side.buffer)[1]
    cell = int(cast(Place, side.fixed).address[thread, value])
    return coordinates(side.buffer, cell // registers, cell % registers)
