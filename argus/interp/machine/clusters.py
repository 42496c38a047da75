"""Blocks that run together: whose memory and barriers are meant, how long they last, and what a multicast sends."""

from __future__ import annotations

from typing import cast

import numpy as np

from argus.core.index import Index
from argus.core.ir import Copy, Stmt, View
from argus.core.walk import evaluate
from argus.interp.machine.agents import Machine, Sent, Unit, Visit
from argus.interp.machine.barriers import HaltError
from argus.interp.machine.clocks import Mark
from argus.interp.violation import Event


def owner_of(unit: Unit, stmt: Stmt, view: View) -> Machine:
    """The block in whose memory a view lies."""
    own = unit.agent.machine
    if view.peer is None:
        return own
    return own.cluster.machines[unit.agent.scalars.number(view.peer, unit.env, unit.number, stmt)]


def receivers(unit: Unit, stmt: Stmt, peers: Index) -> list[Machine]:
    """The blocks of a mask, by rank."""
    mask = unit.agent.scalars.number(peers, unit.env, unit.number, stmt)
    return [machine for machine in unit.agent.machine.cluster.machines if mask >> machine.rank & 1]


def enter(machine: Machine, unit: Unit, event: Event, *, mark: Mark | None = None, bit: int | None = None) -> None:
    """A unit does something to a block: if it is another's, that one has not ended, nor does before this is over."""
    if machine is unit.agent.machine:
        return
    visit = Visit(unit.agent, event, unit.first, mark, bit)
    if machine.ended:
        _left(machine, visit)
        raise HaltError
    machine.visits.append(visit)


def end(machine: Machine) -> None:
    """All threads of a block have ended: what others did to it is over, as one of its threads knows."""
    machine.ended = True
    strands = machine.strands.within(machine.first, machine.first + machine.launch.prepared.kernel.threads)
    clocks = [machine.strands.clocks[strand] for strand in strands]
    for visit in machine.visits:
        if not any(visit.known(clock) for clock in clocks):
            _left(machine, visit)
            raise HaltError


def _left(machine: Machine, visit: Visit) -> None:
    doing = "copies into its shared memory" if isinstance(visit.event.stmt, Copy) else "arrives at its barrier"
    message = f"the block of rank {machine.rank} may have ended when {visit.agent.name} {doing}"
    visit.agent.report("I15", message, visit.event, thread=visit.thread)


def send(unit: Unit, stmt: Copy, event: Event) -> None:
    """Judge a multicast against those of the other blocks: parts of one tile, to the same receivers (I16)."""
    own = unit.agent.machine
    cluster = own.cluster
    assert stmt.peers is not None
    agent = unit.agent.number
    times = cluster.times[stmt, own.rank, agent]
    cluster.times[stmt, own.rank, agent] += 1
    mask = unit.agent.scalars.number(stmt.peers, unit.env, unit.number, stmt)
    made = Sent(event, own.rank, _place(unit, stmt), mask)
    other = cluster.sent.setdefault((stmt, agent, times), made)
    if other is made or (other.place == made.place and other.mask == made.mask):
        return
    name, target = stmt.source.buffer.name, stmt.target.buffer.name
    if other.mask != made.mask:
        what = f"ranks {other.rank} and {made.rank} multicast `{name}` to different blocks"
        facts = tuple((f"sent by rank {each.rank}", f"to ranks {_ranks(each.mask)}") for each in (other, made))
    else:
        what = f"ranks {other.rank} and {made.rank} multicast parts of different tiles of `{name}` into one `{target}`"
        facts = tuple((f"sent by rank {each.rank}", f"the tile at {list(each.place)}") for each in (other, made))
    unit.agent.report("I16", what, event, thread=unit.first, buffer=target, other=other.event, facts=facts)


def _ranks(mask: int) -> str:
    return ", ".join(str(rank) for rank in range(mask.bit_length()) if mask >> rank & 1)


def _place(unit: Unit, stmt: Copy) -> tuple[int, ...]:
    """Where the tensor's element lies that comes to the first of the whole tile in shared memory."""
    source, target = _corner(unit, stmt.source), _corner(unit, stmt.target)
    axes = len(stmt.source.shape)
    moved = (a - b for a, b in zip(source[-axes:], target[-axes:], strict=True))
    return (*source[:-axes], *moved)


def _corner(unit: Unit, view: View) -> tuple[int, ...]:
    zeros = tuple(np.zeros(1, np.int64) for _ in view.shape)
    integers = unit.agent.launch.prepared.integers
    return tuple(int(np.asarray(cast(object, evaluate(at, unit.env, zeros, integers))).flat[0]) for at in view.at)
