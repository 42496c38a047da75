"""Clusters: accesses to other blocks' memory and barriers, lifetimes of blocks (I15), consistent multicasts (I16)."""

from __future__ import annotations

from typing import cast

import numpy as np

from argus.core.index import Index
from argus.core.ir import Copy, Stmt, View
from argus.core.walk import evaluate
from argus.interp.machine.agents import Machine, Multicast, RemoteAccess, Unit
from argus.interp.machine.barriers import HaltError
from argus.interp.machine.clocks import Mark
from argus.interp.violation import Event


def owner_of(unit: Unit, stmt: Stmt, view: View) -> Machine:
    """The block whose shared memory a view addresses."""
    own = unit.agent.machine
    if view.peer is None:
        return own
    return own.cluster.machines[unit.agent.scalars.number(view.peer, unit.env, unit.number, stmt)]


def receivers(unit: Unit, stmt: Stmt, peers: Index) -> list[Machine]:
    """The blocks of a multicast mask, by rank."""
    mask = unit.agent.scalars.number(peers, unit.env, unit.number, stmt)
    return [machine for machine in unit.agent.machine.cluster.machines if mask >> machine.rank & 1]


def record_access(
    machine: Machine, unit: Unit, event: Event, *, mark: Mark | None = None, bit: int | None = None
) -> None:
    """Record an access of a unit to another block, which must not end before the access completes (I15)."""
    if machine is unit.agent.machine:
        return
    access = RemoteAccess(unit.agent, event, unit.first, mark, bit)
    if machine.ended:
        _report_ended(machine, access)
        raise HaltError
    machine.remote_accesses.append(access)


def end_block(machine: Machine) -> None:
    """End a block. Reports accesses by other blocks whose completion happens before none of its threads (I15)."""
    machine.ended = True
    strands = machine.strands.within(machine.first, machine.first + machine.launch.prepared.kernel.threads)
    clocks = [machine.strands.clocks[strand] for strand in strands]
    for access in machine.remote_accesses:
        if not any(access.known(clock) for clock in clocks):
            _report_ended(machine, access)
            raise HaltError


def _report_ended(machine: Machine, access: RemoteAccess) -> None:
    doing = "copies into its shared memory" if isinstance(access.event.stmt, Copy) else "arrives at its barrier"
    message = f"the block of rank {machine.rank} may have ended when {access.agent.name} {doing}"
    access.agent.report("I15", message, access.event, thread=access.thread)


def check_multicast(unit: Unit, stmt: Copy, event: Event) -> None:
    """Check a multicast against those of the other blocks: parts of one tile, to the same receivers (I16)."""
    own = unit.agent.machine
    cluster = own.cluster
    assert stmt.peers is not None
    agent = unit.agent.number
    times = cluster.times[stmt, own.rank, agent]
    cluster.times[stmt, own.rank, agent] += 1
    mask = unit.agent.scalars.number(stmt.peers, unit.env, unit.number, stmt)
    own_send = Multicast(event, own.rank, _place(unit, stmt), mask)
    other = cluster.multicasts.setdefault((stmt, agent, times), own_send)
    if other is own_send or (other.place == own_send.place and other.mask == own_send.mask):
        return
    name, target = stmt.source.buffer.name, stmt.target.buffer.name
    ranks = f"ranks {other.rank} and {own_send.rank}"
    if other.mask != own_send.mask:
        what = f"{ranks} multicast `{name}` to different blocks"
        facts = tuple((f"sent by rank {each.rank}", f"to ranks {_ranks(each.mask)}") for each in (other, own_send))
    else:
        what = f"{ranks} multicast parts of different tiles of `{name}` into one `{target}`"
        facts = tuple((f"sent by rank {each.rank}", f"the tile at {list(each.place)}") for each in (other, own_send))
    unit.agent.report("I16", what, event, thread=unit.first, buffer=target, other=other.event, facts=facts)


def _ranks(mask: int) -> str:
    return ", ".join(str(rank) for rank in range(mask.bit_length()) if mask >> rank & 1)


def _place(unit: Unit, stmt: Copy) -> tuple[int, ...]:
    """The tensor coordinates of the element that is copied to the first element of the whole shared tile."""
    source, target = _corner(unit, stmt.source), _corner(unit, stmt.target)
    axes = len(stmt.source.shape)
    shifted = (a - b for a, b in zip(source[-axes:], target[-axes:], strict=True))
    return (*source[:-axes], *shifted)


def _corner(unit: Unit, view: View) -> tuple[int, ...]:
    zeros = tuple(np.zeros(1, np.int64) for _ in view.shape)
    integers = unit.agent.launch.prepared.integers
    return tuple(int(np.asarray(cast(object, evaluate(at, unit.env, zeros, integers))).flat[0]) for at in view.at)
