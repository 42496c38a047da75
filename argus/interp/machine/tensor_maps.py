"""Tensor maps in memory: edits, their visibility to threads, and copies still in flight through them (I29)."""

from __future__ import annotations

from argus.core.index import Coord
from argus.core.ir import Buffer, Copy, Edit, View
from argus.core.walk import mentions
from argus.interp.machine.agents import TensorMapState, Unit
from argus.interp.machine.asynchrony import AsyncOp
from argus.interp.violation import Event


def edit(unit: Unit, stmt: Edit, event: Event) -> None:
    """Execute one step of an edit: replace, release or acquire."""
    machine, found = unit.agent.machine, unit.agent.machine.maps.get(stmt.map)
    match stmt.step:
        case "replace":
            assert stmt.tensor is not None
            if found is not None:
                _check_unused(unit, stmt.map, found, event)
            tensor = stmt.tensor.buffer, _place(unit, event, stmt.tensor)
            machine.maps[stmt.map] = TensorMapState(tensor, event, machine.strands.now(unit.active_strands))
        case "release":
            if found is not None and _knows(unit, found.edited):
                found.released = machine.strands.now(unit.active_strands)
        case "acquire":
            if found is not None and found.released is not None and _knows(unit, found.released):
                found.acquired |= set(unit.active_strands)


def use(unit: Unit, stmt: Copy, event: Event, strand: int, op: AsyncOp) -> None:
    """Check a copy through a tensor map as it is issued, and record it as a pending use of the map."""
    assert stmt.through is not None
    found = unit.agent.machine.maps.get(stmt.through)
    name = stmt.through.name
    if found is None:
        _report(unit, stmt.through, f"a copy uses the tensor map `{name}` before it describes a tensor", event, None)
        return
    found.ops.append(op)
    if found.released is None:
        why = "the edit was not released"
        _report(unit, stmt.through, f"a copy through `{name}` may use the old tensor map: {why}", event, found.event)
    elif strand not in found.acquired:
        why = "its thread did not acquire the edit"
        _report(unit, stmt.through, f"a copy through `{name}` may use the old tensor map: {why}", event, found.event)
    elif not _within(found, stmt.target, _place(unit, event, stmt.target)):
        buffer, place = found.tensor
        text = f"`{name}` describes `{buffer.name}`[{_text(place)}]"
        _report(unit, stmt.through, f"a copy does not address the tensor of its map: {text}", event, found.event)


def _knows(unit: Unit, marks: tuple[tuple[int, int], ...]) -> bool:
    clocks = unit.agent.machine.strands.clocks
    return all(clocks[strand].knows(marks) for strand in unit.active_strands)


def _check_unused(unit: Unit, buffer: Buffer, found: TensorMapState, event: Event) -> None:
    """Report an edit of a tensor map while a copy through it may be in flight."""
    clocks = unit.agent.machine.strands.clocks
    for op in found.ops:
        if not all(clocks[strand].done >> op.read & 1 for strand in unit.active_strands):
            message = f"`{buffer.name}` is edited while a copy through it may be in flight"
            _report(unit, buffer, message, event, op.event)
            return


def _place(unit: Unit, event: Event, view: View) -> tuple[int | None, ...]:
    """The offset of a view along each axis of its buffer; None along the axes of the view."""
    return tuple(
        None if mentions(at, (Coord,)) else int(unit.agent.scalars.number(at, unit.env, unit.number, event.stmt))
        for at in view.at
    )


def _within(found: TensorMapState, target: View, place: tuple[int | None, ...]) -> bool:
    buffer, described = found.tensor
    return buffer is target.buffer and all(a is None or a == b for a, b in zip(described, place, strict=True))


def _text(place: tuple[int | None, ...]) -> str:
    return ", ".join(":" if at is None else str(at) for at in place)


def _report(unit: Unit, buffer: Buffer, message: str, event: Event, other: Event | None) -> None:
    unit.agent.report(
        "I29",
        message,
        event,
        thread=unit.first,
        buffer=buffer.name,
        other=other,
        other_thread=None if other is None else unit.first,
    )
