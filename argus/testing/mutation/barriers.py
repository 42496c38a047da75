"""Mutation operators on mbarriers: other phases, stages, counts and bytes; early, late or missing releases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from argus.core.algebra import add, const, floordiv, mod
from argus.core.index import Bin, Const
from argus.core.ir import Advance, Alloc, Arrive, Await, Buffer, Copy, If, Kernel, One, Stmt, View, walk
from argus.core.ir.surgery import fresh_copies, with_stmts
from argus.testing.mutation.operator import (
    Change,
    Made,
    Operator,
    allocated,
    around_the_end,
    at_axis,
    each,
    each_buffer,
    lists,
    other,
)


def _drop(_: Kernel, stmt: Await | Arrive | Advance) -> Iterator[Change]:
    yield (), f"{type(stmt).__name__} dropped"


def _twice(_: Kernel, stmt: Arrive) -> Iterator[Change]:
    yield (stmt, *fresh_copies((stmt,))), "arrives twice"


def _phase_ahead(_: Kernel, stmt: Await) -> Iterator[Change]:
    yield from other(stmt, "a phase ahead", phase=add(stmt.phase, 1))


def _phase_behind(_: Kernel, stmt: Await) -> Iterator[Change]:
    yield from other(stmt, "a phase behind", phase=add(stmt.phase, -1))


def _phase_of_parity(_: Kernel, stmt: Await) -> Iterator[Change]:
    yield from other(stmt, "the parity for the phase", phase=mod(stmt.phase, 2))
    yield from other(stmt, "two phases ahead", phase=add(stmt.phase, 2))


def _phase_of_the_use(_: Kernel, stmt: Await) -> Iterator[Change]:
    slot = stmt.event.at[0]
    if isinstance(slot, Bin) and slot.op == "%":
        yield from other(stmt, "the use for the phase", phase=slot.left)
    yield from other(stmt, "always the first phase", phase=const(0))
    yield from other(stmt, "phases half as often", phase=floordiv(stmt.phase, 2))


def _events(stmt: Any) -> Iterator[tuple[str, View]]:  # noqa: ANN401 reason: any statement
    for name in ("event", "signal"):
        view = getattr(stmt, name, None)
        if isinstance(view, View) and view.at:
            yield name, view


def _other_slot(_: Kernel, stmt: Await | Arrive | Copy) -> Iterator[Change]:
    for name, view in _events(stmt):
        for by in (1, -1):
            index = around_the_end(view, 0, add(view.at[0], by))
            yield from other(stmt, f"{name} of slot + {by}", **{name: at_axis(view, 0, index)})


def _one_slot(_: Kernel, stmt: Await | Arrive | Copy) -> Iterator[Change]:
    for name, view in _events(stmt):
        yield from other(stmt, f"{name} of the first slot", **{name: at_axis(view, 0, const(0))})


def _other_barrier(kernel: Kernel, stmt: Await | Arrive | Copy) -> Iterator[Change]:
    for name, view in _events(stmt):
        for buffer in allocated(kernel, "barrier"):
            if buffer is not view.buffer:
                yield from other(stmt, f"{name} is `{buffer.name}`", **{name: evolve(view, buffer=buffer)})


def _count(_: Kernel, stmt: Arrive) -> Iterator[Change]:
    for count in (stmt.count - 1, stmt.count + 1):
        if count > 0:
            yield from other(stmt, f"{count} arrivals", count=count)


def _set_up(_: Kernel, stmt: Alloc) -> Iterator[Change]:
    if stmt.count is not None:
        for count in (stmt.count - 1, stmt.count + 1, stmt.count * 2):
            if count > 0:
                yield from other(stmt, f"set up for {count} arrivals", count=count)


def _bytes(_: Kernel, stmt: Arrive) -> Iterator[Change]:
    if stmt.bytes is const(0):
        return
    for by in (-16, 16, -512, 512):
        yield from other(stmt, f"{by} bytes more", bytes=add(stmt.bytes, by))
    yield from other(stmt, "no bytes", bytes=const(0))
    yield from other(stmt, "half of the bytes", bytes=floordiv(stmt.bytes, 2))


def _is_release(stmt: Stmt) -> bool:
    """Whether it only releases stages: arrivals without bytes, possibly by one thread or under a guard."""
    inner = [s for s in walk((stmt,)) if not isinstance(s, One | If)]
    return bool(inner) and all(isinstance(s, Arrive) and s.bytes is const(0) for s in inner)


def _moved_release(kernel: Kernel, *, later: bool) -> Iterator[Made]:
    for body in lists(kernel):
        for at, stmt in enumerate(body):
            if not _is_release(stmt) or len(body) < 2:
                continue
            before, after = body[at - 1] if at else None, body[at + 1] if at + 1 < len(body) else None
            target = after if later else before
            if target is not None:
                pair = (target, stmt) if later else (stmt, target)
                what = "release after what follows" if later else "release before what precedes"
                yield Made(with_stmts(with_stmts(kernel, stmt, ()), target, pair), what, stmt.span)


def _early(kernel: Kernel) -> Iterator[Made]:
    return _moved_release(kernel, later=False)


def _late(kernel: Kernel) -> Iterator[Made]:
    return _moved_release(kernel, later=True)


def _advance(_: Kernel, stmt: Advance) -> Iterator[Change]:
    for by in (-1, 1):
        yield from other(stmt, f"advanced by {by} more", by=add(stmt.by, by))
    yield from other(stmt, "advanced by nothing", by=const(0))


def _stages(by: int, buffer: Buffer) -> Iterator[tuple[Buffer, str]]:
    extent = buffer.shape[0]
    if isinstance(extent, Const) and extent.value + by > 0:
        yield evolve(buffer, shape=(const(extent.value + by),)), f"of {extent.value + by} elements"


def _fewer(buffer: Buffer) -> Iterator[tuple[Buffer, str]]:
    return _stages(-1, buffer)


def _more(buffer: Buffer) -> Iterator[tuple[Buffer, str]]:
    return _stages(1, buffer)


_AT_EVENTS = (Await, Arrive, Copy)

OPERATORS: tuple[Operator, ...] = (
    Operator("drop_await", "a wait for a barrier is left out", each(Await, _drop)),
    Operator("drop_arrive", "an arrival is left out", each(Arrive, _drop)),
    Operator("repeat_arrive", "an arrival is made twice", each(Arrive, _twice)),
    Operator("phase_ahead", "a wait is for the next phase", each(Await, _phase_ahead)),
    Operator("phase_behind", "a wait is for the previous phase", each(Await, _phase_behind)),
    Operator("phase_by_parity", "a wait names another phase of the same parity", each(Await, _phase_of_parity)),
    Operator("phase_by_other_rule", "a wait's phase follows another rule", each(Await, _phase_of_the_use)),
    Operator("barrier_of_another_slot", "a barrier is that of a neighbouring stage", each(_AT_EVENTS, _other_slot)),
    Operator("barrier_of_one_slot", "a barrier is always that of the first stage", each(_AT_EVENTS, _one_slot)),
    Operator("another_barrier", "a statement uses another barrier", each(_AT_EVENTS, _other_barrier)),
    Operator("arrive_count", "an arrival has another count", each(Arrive, _count)),
    Operator("set_up_count", "a barrier is initialised with another count", each(Alloc, _set_up)),
    Operator("announced_bytes", "another number of bytes is expected", each(Arrive, _bytes)),
    Operator("release_early", "a stage is released one statement earlier", _early),
    Operator("release_late", "a stage is released one statement later", _late),
    Operator("drop_advance", "a counter is not advanced", each(Advance, _drop)),
    Operator("advance_otherwise", "a counter is advanced by another number", each(Advance, _advance)),
    Operator("fewer_barriers", "barriers for fewer stages", each_buffer(_fewer, "barrier")),
    Operator("more_barriers", "barriers for more stages", each_buffer(_more, "barrier")),
)
