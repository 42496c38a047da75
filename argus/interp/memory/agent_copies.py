"""Copies by agents, synchronous or asynchronous, and their accesses to shared memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
from attrs import define

from argus.core.ir import Copy, View
from argus.interp.compiled_kernel import CopyPlan, first_where
from argus.interp.machine import clusters, tensor_maps
from argus.interp.machine.agents import Agent, Machine, Unit
from argus.interp.machine.asynchrony import AsyncOp, Kind
from argus.interp.machine.barriers import TrackedMbarrier
from argus.interp.machine.clocks import Clock, Mark
from argus.interp.memory.atomic_stores import Part
from argus.interp.memory.cells import BOTTOM, TOP
from argus.interp.memory.copies import Mover, Staged, check_place, note_stores
from argus.interp.memory.shadow import StrandAccess
from argus.interp.memory.views import Place
from argus.interp.state import shared_element
from argus.interp.violation import Event, not_built

Rows = tuple[int, int]


@define(eq=False)
class _Move:
    """One copy by some threads of an agent. lands: the mbarrier it signals; into: the block whose memory it writes."""

    unit: Unit
    stmt: Copy
    event: Event
    plan: CopyPlan
    places: tuple[Place, Place]
    rows: Rows
    lands: TrackedMbarrier | None = None
    into: Machine | None = None

    @property
    def agent(self) -> Agent:
        return self.unit.agent

    def mover(self) -> Mover:
        rows = slice(*self.rows)
        parts = Part.of(self.places[0], rows), Part.of(self.places[1], rows)
        made = Mover(self.agent, self.stmt, self.event, self.plan, parts)
        if self.into is not None:
            made.into = self.into.units[0].agent
        return made

    def read(self, mover: Mover) -> Staged:
        """Read the source. Reports shared cells that were never written (I5)."""
        values, marks = mover.read()
        buffer = self.plan.source.buffer
        if buffer.space == "shared" and marks is not None and (marks == BOTTOM).any():
            lane, value = first_where(marks == BOTTOM)
            cell = int(self.places[0].address[self.rows[0] + lane, value])
            self.agent.report(
                "I5",
                f"`{buffer.name}` is read where it was never written",
                self.event,
                thread=self.rows[0] + lane,
                value=value,
                element=shared_element(self.agent.launch.prepared, buffer, cell),
                buffer=buffer.name,
            )
            marks = np.where(marks == BOTTOM, TOP, marks)
        return values, marks

    def touches(self, marks: tuple[Mark, ...], op: AsyncOp | None) -> Iterator[StrandAccess]:
        """The accesses of the copy to shared memory."""
        sides = ((self.plan.source, self.places[0], False), (self.plan.target, self.places[1], True))
        for side, place, writes in sides:
            if side.buffer.space == "shared":
                yield StrandAccess(
                    self.event,
                    self.agent.name,
                    self.agent.base,
                    side.buffer,
                    writes,
                    place.cell_set(*self.rows),
                    place,
                    self.rows,
                    marks,
                    None if op is None else op.complete if writes else op.read,
                    "" if op is None else op.kind,
                    self.stmt.atom.proxy == "async",
                    None if self.lands is None else (self.lands.buffer, self.lands.index),
                    self.unit.skipped_waits,
                )


def copy(unit: Unit, stmt: Copy, event: Event, known: Clock) -> None:
    """Copy synchronously, or issue an asynchronous copy. known: the common clock of the threads that issue it."""
    agent, completion = unit.agent, stmt.atom.completion
    if completion.signal != (stmt.signal is not None):
        raise not_built(
            "copy that completes on an mbarrier, without one" if completion.signal else "copy with a signal", stmt
        )
    plan = agent.launch.prepared.copy(stmt)
    rows = unit.first, min(unit.last, stmt.by.threads.size())
    if rows[0] >= rows[1]:
        return
    places = plan.source.locate(unit.env), plan.target.locate(unit.env)
    for side, place in zip((plan.source, plan.target), places, strict=True):
        check_place(agent, unit, side, place, slice(*rows), event)
    if agent.launch.tags:
        note_stores(agent, plan, places, slice(*rows), event)
    if not completion.signal and completion.queue is None:
        into = None if stmt.target.peer is None else clusters.owner_of(unit, stmt, stmt.target)
        if into is not None:
            for mark in unit.agent.machine.strands.now(unit.active_strands):
                clusters.record_access(into, unit, event, mark=mark)
        _at_once(_Move(unit, stmt, event, plan, places, rows, into=into))
        return
    if "register" in (plan.source.buffer.space, plan.target.buffer.space):
        raise not_built("asynchronous copy of registers", stmt)
    if stmt.peers is not None:
        clusters.check_multicast(unit, stmt, event)
    for strand, span in _spans(unit, rows):
        if stmt.signal is None:
            _issue(_Move(unit, stmt, event, plan, places, span), strand)
            continue
        for into in _destinations(unit, stmt):
            lands = _signal(unit, into, stmt.signal, event, known)
            _issue(_Move(unit, stmt, event, plan, places, span, lands, into), strand)


def _destinations(unit: Unit, stmt: Copy) -> list[Machine]:
    """The blocks whose memory a copy writes."""
    return [unit.agent.machine] if stmt.peers is None else clusters.receivers(unit, stmt, stmt.peers)


def _signal(unit: Unit, into: Machine, view: View, event: Event, known: Clock) -> TrackedMbarrier:
    """The mbarrier of a destination block that a copy signals."""
    if len(view.at) != 1 or view.buffer.space != "barrier" or view.peer is not None:
        raise not_built("mbarrier of several axes, or of a named other block", event.stmt)
    key = view.buffer, unit.agent.scalars.number(view.at[0], unit.env, unit.number, event.stmt)
    return into.barriers.find(unit.agent, event, unit.first, key, known)


def _spans(unit: Unit, rows: Rows) -> Iterator[tuple[int, Rows]]:
    """The strands that execute a statement, each with its threads (of the agent) within `rows`."""
    base = unit.agent.machine.first + unit.agent.base
    for strand in unit.active_strands:
        start, stop = unit.agent.machine.strands.bounds[strand]
        span = max(rows[0], start - base), min(rows[1], stop - base)
        if span[0] < span[1]:
            yield strand, span


def _at_once(move: _Move) -> None:
    unit, agent = move.unit, move.agent
    source, target = move.plan.source.buffer, move.plan.target.buffer
    flying = source.space == "register" and agent.check_in_flight(unit, source, move.event, "read")
    if target.space == "register":
        agent.drop_sums(unit, target)
        agent.check_in_flight(unit, target, move.event, "written")
    if agent.launch.tags and "shared" in (source.space, target.space):
        machine = agent.machine
        for strand, span in _spans(unit, move.rows):
            part = _Move(unit, move.stmt, move.event, move.plan, move.places, span)
            for touch in part.touches(machine.strands.now((strand,)), None):
                shadow = move.into.shadow if touch.writes and move.into is not None else machine.shadow
                shadow.note(touch, machine.strands.clocks[strand])
    mover = move.mover()
    values, marks = move.read(mover)
    if flying and marks is not None:
        marks = np.full_like(marks, TOP)
    mover.write((values, marks))


def _issue(move: _Move, strand: int) -> None:
    machine, unit, atom, barrier = move.agent.machine, move.unit, move.stmt.atom, move.lands
    into = machine if move.into is None else move.into
    number = machine.engine.number()
    kind: Kind = "tma" if barrier is not None else "cp_async" if atom.completion.queue == "cp_async" else "bulk"
    lane = (kind, number) if barrier is not None else (kind, strand)
    op = AsyncOp(number, kind, lane, move.event, move.stmt, deque())
    clusters.record_access(into, unit, move.event, bit=op.complete)
    mover, staged = move.mover(), list[Staged]()
    op.moments.append(lambda: staged.append(move.read(mover)))
    op.moments.append(lambda: mover.write(staged.pop()))
    if barrier is not None:
        size = move.stmt.by.threads.size() * move.stmt.by.values.size() * move.plan.target.buffer.dtype.bits // 8
        known = 1 << op.read | 1 << op.complete
        barrier.underway[number] = (barrier.state.phases, move.event)
        op.moments.append(lambda: barrier.land(move.agent, move.event, move.rows[0], number, known, size))
    else:
        machine.queue_of(kind, strand).add(op, alone=atom.completion.group == "each")
    if move.stmt.through is not None:
        tensor_maps.use(unit, move.stmt, move.event, strand, op)
    if move.agent.launch.tags:
        for touch in move.touches(machine.strands.now((strand,)), op):
            into.shadow.note(touch, machine.strands.clocks[strand])
    unit.launch(op)
