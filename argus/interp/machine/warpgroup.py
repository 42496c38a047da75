"""wgmma in the interpreter: operands are read, and accumulators written, asynchronously after issue."""

from __future__ import annotations

from collections import deque

from argus.core.ir import Mma, View
from argus.interp.compiled_kernel import first_where
from argus.interp.machine.agents import Unit
from argus.interp.machine.asynchrony import AsyncOp
from argus.interp.machine.clocks import Clock, meet
from argus.interp.memory.cells import IntArray
from argus.interp.memory.shadow import StrandAccess
from argus.interp.state import coordinates
from argus.interp.values.mma import add, fetch
from argus.interp.values.operands import Operands, Source
from argus.interp.violation import Event, not_built


def multiply(unit: Unit, stmt: Mma, event: Event) -> None:
    """Issue one wgmma; the writes that it reads must happen before in all strands of the warpgroup."""
    agent, machine = unit.agent, unit.agent.machine
    if agent.threads != stmt.atom.unit or unit.last - unit.first != stmt.atom.unit or stmt.tiling.threads != 1:
        raise not_built("wgmma by something other than one warpgroup", stmt)
    init = bool(agent.scalars.number(stmt.init, unit.env, unit.number, stmt))
    held = tuple(view.buffer for view in (stmt.target, stmt.a, stmt.b) if view.buffer.space == "register")
    _check_registers(unit, stmt, event)
    op = AsyncOp(machine.engine.number(), "wgmma", ("wgmma", machine.first + agent.base), event, stmt, deque(), held)
    known = meet([machine.strands.clocks[strand] for strand in unit.active_strands])
    a, b = (_cells(unit, stmt, role, view, (op, known)) for role, view in (("a", stmt.a), ("b", stmt.b)))
    accumulators = agent.launch.prepared.registers(stmt, "c", stmt.target)
    if accumulators[0].shape != (a.shape[0], b.shape[0]) or a.shape[1] != b.shape[1]:
        raise not_built(f"product of {a.shape} and {b.shape} elements into {accumulators[0].shape}", stmt)
    staged: list[Source] = []

    def read() -> None:
        staged.extend((fetch(agent, stmt.a, a), fetch(agent, stmt.b, b)))

    def write() -> None:
        add(agent, unit, stmt, event, Operands(staged[0], staged[1], accumulators[0], accumulators, init))

    op.moments.extend((read, write))
    for buffer in held:
        unit.pending_registers.setdefault(buffer, []).append(op)
    machine.queue_of("wgmma", unit.active_strands[0]).add(op, alone=not stmt.grouped)
    unit.launch(op)


def _check_registers(unit: Unit, stmt: Mma, event: Event) -> None:
    """Check the registers of a wgmma (I11): fenced since generic code used them, and in flight only as accumulators."""
    for view in (stmt.target, stmt.a):
        buffer = view.buffer
        if buffer.space != "register":
            continue
        before = unit.touched.get(buffer)
        if before is not None:
            why = "no `wgmma` fence lies between"
            _report(unit, view, event, f"`{buffer.name}` is used by a wgmma after generic code used it: {why}", before)
        for op in unit.pending_registers.get(buffer, ()):
            assert isinstance(op.stmt, Mma)
            same = (op.stmt.target.buffer is buffer) == (view is stmt.target)
            if not same:
                _report(unit, view, event, f"`{buffer.name}` is used while a wgmma on it is in flight", op.event)


def _report(unit: Unit, view: View, event: Event, message: str, other: Event) -> None:
    buffer, thread = view.buffer, unit.first
    element = coordinates(buffer, thread, 0)
    unit.agent.report("I11", message, event, thread=thread, value=0, element=element, buffer=buffer.name, other=other)


def _cells(unit: Unit, stmt: Mma, role: str, view: View, issue: tuple[AsyncOp, Clock]) -> IntArray:
    """The cells of an operand, (row, k); records its reads of shared memory."""
    agent, machine = unit.agent, unit.agent.machine
    prepared, (op, known) = agent.launch.prepared, issue
    if view.buffer.space == "register":
        return prepared.registers(stmt, role, view)[0]
    if view.buffer.space != "shared":
        raise not_built(f"matrix operand in {view.buffer.space} memory", stmt)
    locator = prepared.matrix(stmt, view)
    place = locator.locate(unit.env)
    if place.out_of_bounds is not None:
        _, element = first_where(place.out_of_bounds)
        at = locator.coordinates(unit.env, 0, element)
        text = f"access outside `{view.buffer.name}`: element {list(at)}"
        agent.report("I37", text, op.event, thread=unit.first, element=at, buffer=view.buffer.name)
    if agent.launch.tags:
        marks = machine.strands.now(unit.active_strands)
        cells = place.cell_set(0, 1)
        touch = StrandAccess(op.event, agent.name, agent.base, view.buffer, False, cells, place, (0, 1), marks)
        touch.bit, touch.queue, touch.proxied, touch.skipped_waits = op.read, op.kind, True, unit.skipped_waits
        machine.shadow.note(touch, known)
    return place.address[0].reshape(locator.by.tile, order="F")
