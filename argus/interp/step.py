"""Executes statements of waves, and runs one block with a single block barrier from start to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import numpy as np

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
    If,
    Let,
    Map,
    Mma,
    One,
    Policy,
    Reset,
    Roles,
    Stmt,
    Sync,
    Tag,
    Wait,
)
from argus.core.layout import TV
from argus.core.walk import evaluate
from argus.interp.compiled_kernel import lane_values, registers_of
from argus.interp.machine import barrier_divergence
from argus.interp.machine.waves import Frame, Wave
from argus.interp.memory import races
from argus.interp.memory.cells import BOTTOM, NUMBER, OPAQUE, IntArray, poison
from argus.interp.memory.copies import copy
from argus.interp.memory.views import is_whole
from argus.interp.state import Block, Launch
from argus.interp.values import claims
from argus.interp.values.elementwise import assign
from argus.interp.values.mma import multiply
from argus.interp.values.reductions import fold
from argus.interp.violation import Event, HaltError, OutOfBoundsReadError, not_built


def run_block(launch: Launch, index: tuple[int, ...]) -> None:
    """Run one block to its end, then check for races and barrier divergence."""
    block = _start(launch, index)
    ready = [wave.number for wave in block.waves]
    while ready:
        wave = block.waves[launch.adversary.next_wave(ready)]
        try:
            _step(block, wave)
        except HaltError:
            launch.halted = True
            return
        if launch.adversary.schedule.style == "mixed":
            _let_time_pass(block)
        if wave.blocked or wave.finished:
            ready = _ready(block)
    barrier_divergence.check(block)
    for wave in block.waves:
        for queue in wave.queues.values():
            queue.complete()
    if launch.tags:
        races.check(block)


def _start(launch: Launch, index: tuple[int, ...]) -> Block:
    kernel = launch.prepared.kernel
    unit = launch.prepared.unit
    env = {**launch.sizes, **dict(zip(kernel.blocks, index, strict=True))}
    waves = [
        Wave(number, number * unit, min((number + 1) * unit, kernel.threads), dict(env), [Frame(kernel.body, ())])
        for number in range(launch.prepared.waves)
    ]
    return Block(launch, index, waves)


def _ready(block: Block) -> list[int]:
    """Waves that can execute: the barrier blocks those that have arrived more often than the slowest wave."""
    least = min(wave.arrivals for wave in block.waves)
    for wave in block.waves:
        wave.blocked = wave.arrivals > least
    return [wave.number for wave in block.waves if not wave.blocked and not wave.finished]


def _let_time_pass(block: Block) -> None:
    for wave in block.waves:
        for queue in wave.queues.values():
            while queue.running and block.launch.adversary.advances(queue.name):
                queue.advance()


def _step(block: Block, wave: Wave) -> None:
    """Execute the wave's next statement, after entering the loops and branches that lead to it."""
    stmt = wave.next()
    try:
        while stmt is not None:
            block.launch.coverage[stmt] += 1
            if not _enter(block, wave, stmt):
                break
            stmt = wave.next()
        if stmt is None:
            wave.finished = True
            return
        _execute(block, wave, stmt, wave.event(stmt, block.index))
    except OutOfBoundsReadError as beyond:
        raise report_out_of_bounds_read(
            block, wave, stmt, lambda each: wave.event(each, block.index), beyond
        ) from beyond


def report_out_of_bounds_read(
    block: Block,
    wave: Wave,
    stmt: Stmt | None,
    event: Callable[[Stmt], Event],
    found: OutOfBoundsReadError,
) -> HaltError | OutOfBoundsReadError:
    """Report an out-of-bounds read of an integer by the statement that uses it (I37); returns the exception to raise.

    In tags and claims it is no access, so nothing is reported.
    """
    if stmt is None or isinstance(stmt, Tag | Assert):
        return found
    name, element = found.buffer.name, ", ".join(map(str, found.element))
    block.report(
        "I37",
        f"access outside `{name}`: element [{element}] of extents [{', '.join(map(str, found.extents))}]",
        event(stmt),
        thread=wave.first,
        element=found.element,
        buffer=name,
    )
    return HaltError()


def _enter(block: Block, wave: Wave, stmt: Stmt) -> bool:
    scalars = block.launch.prepared.scalars
    if isinstance(stmt, For):
        start, stop = (scalars.number(bound, wave.env, wave.number, stmt) for bound in (stmt.start, stmt.stop))
        wave.enter_loop(stmt, range(start, stop, stmt.step))
        return True
    if isinstance(stmt, If):
        wave.enter_branch(stmt, holds=bool(scalars.number(stmt.cond, wave.env, wave.number, stmt)))
        return True
    return isinstance(stmt, Policy)


def _execute(block: Block, wave: Wave, stmt: Stmt, event: Event) -> None:
    match stmt:
        case Alloc(buffer=buffer, count=count):
            _allocate(block, wave, stmt, buffer, count)
        case Copy():
            copy(block, wave, stmt, event)
        case Map():
            assign(block, wave, stmt, event)
        case Fold():
            fold(block, wave, stmt, event)
        case Mma():
            multiply(block, wave, stmt, event)
        case Sync():
            _arrive(block, wave, stmt, event)
        case Wait():
            _wait(wave, stmt, event)
        case Tag():
            retag(block, wave, stmt)
        case Reset(buffer=buffer):
            _reset(block, wave, stmt, buffer)
        case Assert():
            if block.launch.tags:
                claims.check_claim(block, wave, stmt, event)
        case For() | If() | Policy() | Assume():
            pass
        case Let() | Arrive() | Await() | Commit() | Fence() | Edit() | Advance() | Roles() | One():
            raise not_built(type(stmt).__name__, stmt)
        case _:
            assert_never(stmt)


def _allocate(block: Block, wave: Wave, stmt: Stmt, buffer: Buffer, count: int | None) -> None:
    if count is not None or buffer.space not in ("shared", "register"):
        raise not_built(f"storage of kind {buffer.space}", stmt)
    block.cells(buffer)
    if buffer.space == "register":
        clear(block, wave, buffer)


def clear(block: Block, wave: Wave, buffer: Buffer) -> None:
    """Make this wave's registers of a fragment uninitialised."""
    cells = block.cells(buffer)
    registers = registers_of(buffer)[1]
    rows = slice(wave.first * registers, wave.last * registers)
    if cells.values is not None:
        cells.values[rows] = poison(buffer.dtype)
    if cells.marks is not None:
        cells.marks[rows] = BOTTOM
    block.drop_sums(wave, buffer)


def _reset(block: Block, wave: Wave, stmt: Reset, buffer: Buffer) -> None:
    if buffer.space != "register":
        raise not_built(f"reset of {buffer.space} memory", stmt)
    clear(block, wave, buffer)


def _arrive(block: Block, wave: Wave, stmt: Sync, event: Event) -> None:
    if stmt.barrier != "cta" or stmt.how != "meet" or stmt.threads not in (None, block.launch.prepared.kernel.threads):
        raise not_built("named or split barrier", stmt)
    wave.arrivals += 1
    wave.barrier = event
    wave.blocked = True


def _wait(wave: Wave, stmt: Wait, event: Event) -> None:
    if stmt.of != "all":
        raise not_built("wait for reads alone", stmt)
    for operation in wave.queue(stmt.queue).cover(stmt.pending):
        for access in operation.accesses:
            access.drained, access.over = wave.arrivals, event.path
        flying = wave.pending_loads.get(operation.stmt.target.buffer)
        if flying and operation in flying:
            flying.remove(operation)


def retag(block: Block, wave: Wave, stmt: Tag) -> None:
    """Execute a `Tag` statement on registers; tags of tensors are assigned before the launch."""
    buffer = stmt.view.buffer
    if buffer.space == "global":
        return
    if buffer.space != "register" or not is_whole(stmt.view):
        raise not_built(f"tags of {buffer.space} memory", stmt)
    marks = block.cells(buffer).marks
    if marks is None:
        return
    threads, registers = registers_of(buffer)
    rows = slice(min(wave.first, threads), min(wave.last, threads))
    held = marks.reshape(threads, registers)[rows]
    layout = buffer.layout
    assert isinstance(layout, TV)
    coords = [axis[rows] for axis in layout.coordinates()]
    columns: dict[str, IntArray] = {}
    for name, node in stmt.names:
        value = evaluate(
            node,
            {**lane_values(node, rows, block.launch.prepared.unit), **wave.env},
            coords,
            block.launch.prepared.integers,
        )
        columns[name] = np.broadcast_to(np.asarray(value), held.shape).reshape(-1)
    records = block.launch.records
    first = records.add(held.size, columns, records.summed(held).reshape(-1))
    fresh = np.arange(first, first + held.size, dtype=np.int64).reshape(held.shape)
    held[:] = np.where((held >= 0) | (held >= NUMBER) & (held <= OPAQUE), fresh, held)
    block.drop_sums(wave, buffer)
