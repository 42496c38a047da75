"""Executes statements of units: barriers, queues, fences and counters; other statements as for waves."""

from __future__ import annotations

from typing import assert_never

from argus.core.barriers import NamedBarrier
from argus.core.index import Cond, Index
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Await,
    Buffer,
    Commit,
    Copy,
    Edit,
    Fence,
    Fold,
    For,
    Get,
    If,
    Let,
    Map,
    Mma,
    One,
    Peek,
    Policy,
    Reset,
    Roles,
    Stmt,
    Sync,
    Tag,
    View,
    Wait,
    static,
)
from argus.interp.machine import clusters, tensor_maps, warpgroup
from argus.interp.machine.agents import Unit, Waiting
from argus.interp.machine.asynchrony import bits
from argus.interp.machine.barriers import TrackedMbarrier, TrackedNamedBarrier
from argus.interp.machine.clocks import Clock, meet
from argus.interp.machine.waves import Frame
from argus.interp.memory import agent_copies
from argus.interp.step import clear, report_out_of_bounds_read, retag
from argus.interp.values import claims
from argus.interp.values.elementwise import assign
from argus.interp.values.mma import multiply
from argus.interp.values.nodes import parts_first
from argus.interp.values.reductions import fold
from argus.interp.violation import Event, OutOfBoundsReadError, not_built


def step(unit: Unit) -> None:
    """Execute the unit's next statement, or complete its wait; enters the loops and branches that lead to it."""
    if not unit.begun:
        unit.begin()
    if unit.waiting is not None:
        _leave(unit, unit.waiting)
        return
    stmt = unit.next()
    try:
        while stmt is not None:
            unit.agent.launch.coverage[stmt] += 1
            if not enter(unit, stmt):
                break
            stmt = unit.next()
        if stmt is None:
            unit.finished = True
            return
        _execute(unit, stmt, unit.execution_event(stmt))
    except OutOfBoundsReadError as beyond:
        raise report_out_of_bounds_read(unit.agent, unit, stmt, unit.execution_event, beyond) from beyond


def enter(unit: Unit, stmt: Stmt) -> bool:
    """Enter or pass a control statement (loop, branch, advice); returns whether the statement is one."""
    if isinstance(stmt, For):
        start, stop = (_number(unit, stmt, bound) for bound in (stmt.start, stmt.stop))
        unit.enter_loop(stmt, range(start, stop, stmt.step))
    elif isinstance(stmt, If):
        unit.enter_branch(stmt, holds=bool(_number(unit, stmt, stmt.cond)))
    elif isinstance(stmt, One):
        if unit.first == 0:
            frame = unit.frames[-1]
            unit.frames.append(Frame(stmt.body, (*frame.path, frame.index - 1, 0), restore=unit.last))
            unit.last = 1
    else:
        return isinstance(stmt, Policy | Assume)
    return True


def _number(unit: Unit, stmt: Stmt, node: Index | Cond) -> int:
    return unit.agent.scalars.number(node, unit.env, unit.number, stmt)


def _execute(unit: Unit, stmt: Stmt, event: Event) -> None:
    agent = unit.agent
    match stmt:
        case Alloc(buffer=buffer, count=count):
            _allocate(unit, stmt, buffer, count)
        case Copy():
            _touch(unit, event, stmt.source.buffer, stmt.target.buffer)
            agent_copies.copy(unit, stmt, event, _common(unit))
        case Map():
            gets = (part.view.buffer for part in parts_first(stmt.elem) if isinstance(part, Get))
            _touch(unit, event, stmt.target.buffer, *gets)
            assign(agent, unit, stmt, event)
        case Fold():
            _touch(unit, event, stmt.source.buffer, stmt.target.buffer)
            fold(agent, unit, stmt, event)
        case Mma():
            _multiply(unit, stmt, event)
        case Arrive():
            _arrive(unit, stmt, event)
        case Await():
            barrier, phase = _barrier(unit, stmt.event, event), _number(unit, stmt, stmt.phase)
            _wait_on(unit, Waiting(event, barrier, phase))
        case Sync():
            _sync(unit, stmt, event)
        case Commit(queue=queue):
            for strand in _owners(unit, queue):
                agent.machine.queue_of(queue, strand).commit()
        case Wait():
            _wait(unit, stmt)
        case Fence():
            _fence(unit, stmt)
        case Let(symbol=symbol, value=Peek(view=view)) if view.buffer.space == "counter":
            unit.env[symbol] = unit.counters[view.buffer]
        case Edit():
            tensor_maps.edit(unit, stmt, event)
        case Advance(counter=counter, by=by):
            unit.counters[counter] += _number(unit, stmt, by)
        case Tag():
            retag(agent, unit, stmt)
        case Reset(buffer=buffer):
            if buffer.space != "register":
                raise not_built(f"reset of {buffer.space} memory", stmt)
            clear(agent, unit, buffer)
        case Assert():
            if agent.launch.tags:
                claims.check_claim(agent, unit, stmt, event)
        case Roles() | For() | If() | One() | Policy() | Assume():
            pass
        case Let():
            raise not_built(type(stmt).__name__, stmt)
        case _:
            assert_never(stmt)


def _touch(unit: Unit, event: Event, *buffers: Buffer) -> None:
    """Note that generic code uses these registers."""
    for buffer in buffers:
        if buffer.space == "register":
            unit.touched[buffer] = event


def _multiply(unit: Unit, stmt: Mma, event: Event) -> None:
    if stmt.atom.completion.queue is not None:
        warpgroup.multiply(unit, stmt, event)
        return
    if unit.agent.width != stmt.atom.unit:
        raise not_built(f"`{stmt.atom}` in units of {unit.agent.width} threads", stmt)
    _touch(unit, event, stmt.target.buffer, stmt.a.buffer, stmt.b.buffer)
    multiply(unit.agent, unit, stmt, event)


def _allocate(unit: Unit, stmt: Alloc, buffer: Buffer, count: int | None) -> None:
    agent, machine = unit.agent, unit.agent.machine
    if buffer.space == "counter":
        unit.counters[buffer] = 0
    elif buffer.space == "barrier":
        if unit.first == 0:
            if count is None or (buffer, 0) in machine.barriers.table:
                raise not_built("barrier initialised without a count, or twice", stmt)
            leader = machine.strands.now(unit.active_strands)[0]
            machine.barriers.set_up(buffer, static(buffer.shape[0]), count, leader)
    elif buffer.space == "map":
        return
    elif buffer.space in ("shared", "register") and count is None:
        agent.cells(buffer)
        if buffer.space == "register":
            clear(agent, unit, buffer)
    else:
        raise not_built(f"storage of kind {buffer.space}", stmt)


def _barrier(unit: Unit, view: View, event: Event) -> TrackedMbarrier:
    if len(view.at) != 1 or view.buffer.space != "barrier":
        raise not_built("barrier of several axes", event.stmt)
    key = view.buffer, _number(unit, event.stmt, view.at[0])
    owner = clusters.owner_of(unit, event.stmt, view)
    return owner.barriers.find(unit.agent, event, unit.first, key, _common(unit))


def _common(unit: Unit) -> Clock:
    return meet([unit.agent.machine.strands.clocks[strand] for strand in unit.active_strands])


def _arrive(unit: Unit, stmt: Arrive, event: Event) -> None:
    owner = clusters.owner_of(unit, stmt, stmt.event)
    clusters.record_access(owner, unit, event, mark=unit.agent.machine.strands.now(unit.active_strands)[0])
    barrier = _barrier(unit, stmt.event, event)
    unit.agent.machine.strands.release(unit.active_strands, barrier.arrived)
    count = (unit.last - unit.first) * stmt.count
    barrier.arrive(unit.agent, event, unit.first, count, _number(unit, stmt, stmt.bytes))


def _sync(unit: Unit, stmt: Sync, event: Event) -> None:
    agent, machine = unit.agent, unit.agent.machine
    own = agent.role is not None and stmt.barrier == agent.role.name
    threads = stmt.threads if stmt.threads is not None else agent.launch.prepared.kernel.threads
    key = stmt.barrier, agent.number if own else -1
    named_barriers = machine.named_barriers
    if stmt.barrier == "cluster":
        named_barriers, threads = machine.cluster.named_barriers, threads * len(machine.cluster.machines)
    found = named_barriers.get(key)
    if found is None:
        clocks = Clock.of(len(machine.strands.bounds)), Clock.of(len(machine.strands.bounds))
        found = named_barriers[key] = TrackedNamedBarrier(stmt.barrier, NamedBarrier(threads), *clocks)
    if stmt.how == "wait":
        _second_half(unit, stmt, event, found)
        return
    generation = found.state.generation
    if stmt.how == "arrive" and stmt.barrier == "cluster":
        unit.arrived = generation  # other barriers have no wait of their own
    machine.strands.release(unit.active_strands, found.arrived)
    found.arrive(agent, event, unit.first, unit.last - unit.first, threads)
    if stmt.how == "meet":
        _wait_on(unit, Waiting(event, found, generation))


def _second_half(unit: Unit, stmt: Sync, event: Event, found: TrackedNamedBarrier) -> None:
    if unit.arrived is None:
        raise not_built(f"wait at the barrier `{stmt.barrier}` without an arrival before it", stmt)
    generation, unit.arrived = unit.arrived, None
    _wait_on(unit, Waiting(event, found, generation))


def _wait_on(unit: Unit, waiting: Waiting) -> None:
    unit.waiting = waiting
    if waiting.over():
        _leave(unit, waiting)


def _leave(unit: Unit, waiting: Waiting) -> None:
    """Complete a wait: the unit acquires the clocks of the arrivals."""
    unit.waiting = None
    agent = unit.agent
    agent.machine.strands.acquire(unit.active_strands, waiting.on.released)
    if isinstance(waiting.on, TrackedMbarrier):
        key = waiting.on.buffer, waiting.on.index
        if not unit.follows_last_wait(waiting.on, waiting.phase):
            unit.skipped_waits[key] = waiting.event, waiting.phase
        unit.waited[key] = waiting.phase
        waiting.on.check_wait(agent, waiting.event, unit.first, waiting.phase)
    else:
        unit.arrivals += 1


def _owners(unit: Unit, queue: str) -> tuple[int, ...]:
    """The owners of the groups that a statement counts: the warpgroup (by its first strand), or each strand."""
    return unit.active_strands[:1] if queue == "wgmma" else unit.active_strands


def _wait(unit: Unit, stmt: Wait) -> None:
    machine = unit.agent.machine
    if stmt.queue in ("vmem", "lds"):
        raise not_built(f"queue {stmt.queue} of agents", stmt)
    reads = stmt.of == "reads"
    for strand in _owners(unit, stmt.queue):
        covered = machine.queue_of(stmt.queue, strand).cover(stmt.pending, reads=reads)
        for op in covered:
            machine.engine.complete(op, reads=reads)
            for buffer in op.registers:
                ops = unit.pending_registers[buffer]
                if op in ops:
                    ops.remove(op)
        waiting = unit.active_strands if stmt.queue == "wgmma" else (strand,)
        machine.strands.complete(waiting, bits(covered, reads=reads))


def _fence(unit: Unit, stmt: Fence) -> None:
    machine = unit.agent.machine
    match stmt.kind:
        case "async_proxy":
            machine.strands.fence(unit.active_strands)
        case "barrier_init":
            machine.barriers.fence(machine.strands.now(unit.active_strands))
        case "wgmma":
            unit.touched.clear()
        case "device":
            pass  # it orders this thread's own accesses only; other threads need a barrier
        case "tensormap":
            raise not_built(f"{stmt.kind} fence", stmt)
        case _:
            assert_never(stmt.kind)
