"""The remaining statements of a blocked unit, which depend on neither barriers nor data, and their arrivals."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

from attrs import evolve

from argus.core.ir import Advance, Arrive, Buffer, Copy, Let, Peek, Stmt, Sync, View
from argus.interp.machine.agents import Unit
from argus.interp.machine.barriers import TrackedMbarrier, TrackedNamedBarrier
from argus.interp.machine.clusters import owner_of, receivers
from argus.interp.machine.events import enter

Key = tuple[Buffer | str, int, str]
"""An mbarrier and its element, or the name of a named barrier and the agent that owns it (-1 for a shared one); and the
suffix that identifies its block in a cluster."""

_MOST = 20_000


def key_of(unit: Unit, on: TrackedMbarrier | TrackedNamedBarrier) -> Key:
    """The key of the barrier that a unit waits for."""
    if isinstance(on, TrackedMbarrier):
        return on.buffer, on.index, on.owner
    return on.name, _owner(unit, on.name), _block(unit, on.name)


def arrivals(unit: Unit) -> Iterator[tuple[Key, Stmt]]:
    """The arrivals that the unit would still make, in order; not the one at a barrier where it waits."""
    for stmt, ghost in _rest(unit):
        match stmt:
            case Arrive(event=event):
                yield _event(ghost, stmt, event), stmt
            case Copy(signal=signal, peers=peers) if signal is not None:
                buffer, index, own = _event(ghost, stmt, signal)
                blocks = [own] if peers is None else [each.suffix for each in receivers(ghost, stmt, peers)]
                for block in blocks:
                    yield (buffer, index, block), stmt
            case Sync(barrier=name, how=how) if how != "wait":
                yield (name, _owner(unit, name), _block(unit, name)), stmt
            case _:
                pass


def _rest(unit: Unit) -> Iterator[tuple[Stmt, Unit]]:
    """The remaining statements, each with a copy of the unit advanced to it."""
    ghost = evolve(
        unit,
        env=dict(unit.env),
        frames=[copy(frame) for frame in unit.frames],
        loops=list(unit.loops),
        counters=dict(unit.counters),
    )
    for _ in range(_MOST):
        stmt = ghost.next()
        if stmt is None:
            return
        if enter(ghost, stmt):
            continue
        match stmt:
            case Let(symbol=symbol, value=Peek(view=view)) if view.buffer.space == "counter":
                ghost.env[symbol] = ghost.counters[view.buffer]
            case Advance(counter=counter, by=by):
                ghost.counters[counter] += ghost.agent.scalars.number(by, ghost.env, ghost.number, stmt)
            case _:
                yield stmt, ghost


def _event(unit: Unit, stmt: Stmt, view: View) -> Key:
    at = unit.agent.scalars.number(view.at[0], unit.env, unit.number, stmt)
    return view.buffer, at, owner_of(unit, stmt, view).suffix


def _block(unit: Unit, name: str) -> str:
    return "" if name == "cluster" else unit.agent.machine.suffix


def _owner(unit: Unit, name: str) -> int:
    """The number of the agent that owns a named barrier, or -1 if all agents that name it share it."""
    role = unit.agent.role
    return unit.agent.number if role is not None and name == role.name else -1
