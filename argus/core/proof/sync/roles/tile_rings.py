"""Rings with one use per tile: filled before the tile's loop, and released after it or, if not held so long, before it.

Fill and wait precede all other ring operations, which preserves the order of tiles: a wait inside a tile is then for
an event of the same tile or an earlier one. Source: proof-methods 3.6; listing 2.4 of `reference/ir.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Index
from argus.core.proof.sync.roles.context import ProofContext, refuse
from argus.core.proof.sync.roles.events import (
    ArriveEvent,
    Event,
    FillEvent,
    MmaEvent,
    MmaWaitEvent,
    OrderEvent,
    ReadEvent,
    SyncEvent,
    WaitEvent,
)
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage, bytes_of
from argus.core.proof.sync.roles.prologue_epilogue import PlacedOp
from argus.core.proof.sync.roles.uses import phase_of, ring_reads
from argus.core.protocol.ring import ArriveFull, Copy, Op, Read, Release, WaitEmpty, WaitFull


@frozen(eq=False)
class TileOps:
    """The operations of a role once per tile, before its trips and after them."""

    before: tuple[PlacedOp, ...] = field(default=())
    after: tuple[PlacedOp, ...] = field(default=())


def tile_ring_ops(role: ParsedRole, rings: Sequence[RingStorage], proof: ProofContext) -> TileOps:
    """The operations on rings with one use per tile. Raises RefusedError for another order or another use."""
    once = tuple(ring for ring in rings if ring.per_tile)
    if not once:
        return TileOps()
    use = _use(role, proof)
    before = tuple(_placed(each, ring, use) for each, ring in _ring_events(role.prologue, once))
    after = tuple(
        _placed(each, ring, use) for each, ring in _ring_events(role.epilogue, once) if not _is_end(role, ring, each)
    )
    _check_order(role, rings, once)
    for each in after:
        if isinstance(each.op, WaitEmpty | WaitFull | ArriveFull | Copy):
            refuse(each.stmt, "a ring with one use per tile is filled or awaited after the tile's loop")
    return TileOps(tuple(_with_reads(before)), tuple(_with_reads(after)))


def _with_reads(ops: Sequence[PlacedOp]) -> Iterator[PlacedOp]:
    """The operations, with the last read of a slot just ahead of its release."""
    for each in ops:
        if isinstance(each.op, Release):
            yield PlacedOp(Read(each.op.ring, late=False), each.stmt, None, algebra.TRUE)
        yield each


def _use(role: ParsedRole, proof: ProofContext) -> Index:
    tiles = role.tile_loop.tiles
    return algebra.const(0) if tiles is None else proof.base(algebra.pick(role.active, 1, 0), tiles)


def _ring_events(events: Sequence[Event], once: Sequence[RingStorage]) -> Iterator[tuple[Event, RingStorage]]:
    for event in events:
        if isinstance(event.action, WaitEvent | ArriveEvent | FillEvent):
            barrier = event.action.barrier
            ring = next((each for each in once if barrier in (each.full, each.empty)), None)
            if ring is not None:
                yield event, ring


def _is_end(role: ParsedRole, ring: RingStorage, event: Event) -> bool:
    """Whether an event is a final wait for released stages, which `drains_at_end` checks (kernels of one tile only)."""
    return role.tile_loop.tiles is None and ring.producer is role and isinstance(event.action, WaitEvent)


def _check_order(role: ParsedRole, rings: Sequence[RingStorage], once: Sequence[RingStorage]) -> None:
    """Waits precede all other ring operations, and reads are between the wait and the release."""
    held_now: set[int] = set()
    begun = False
    for event in (*role.prologue, *(each for run in role.use_loops for each in run.events), *role.epilogue):
        match event.action:
            case WaitEvent(barrier=barrier) | ArriveEvent(barrier=barrier) | FillEvent(barrier=barrier):
                ring = next((each for each in once if barrier in (each.full, each.empty)), None)
                if ring is None:
                    begun = True
                elif isinstance(event.action, WaitEvent) and barrier is ring.full:
                    held_now.add(ring.number)
                elif isinstance(event.action, ArriveEvent) and barrier is ring.empty:
                    held_now.discard(ring.number)
                if (
                    ring is not None
                    and isinstance(event.action, WaitEvent)
                    and begun
                    and not _is_end(role, ring, event)
                ):
                    refuse(event.stmt, "a ring with one use per tile, awaited after other rings are used")
            case MmaEvent() | ReadEvent():
                for ring, _ in ring_reads(event, rings):
                    if ring.per_tile and ring.number not in held_now:
                        refuse(event.stmt, "a ring with one use per tile is read outside its wait and release")
            case OrderEvent() if not begun:
                refuse(event.stmt, "turns before the wait for a ring with one use per tile")
            case SyncEvent() | MmaWaitEvent() | OrderEvent():
                pass


def _placed(event: Event, ring: RingStorage, use: Index) -> PlacedOp:
    action, stmt, number = event.action, event.stmt, ring.number
    if event.guard is not algebra.TRUE:
        refuse(stmt, "a ring with one use per tile, used under a condition")
    match action:
        case WaitEvent(barrier=barrier):
            empty = barrier is ring.empty
            _check_slot(action.use, use, ring, event)
            if action.phase is not phase_of(use, ring.stages, -1 if empty else 0):
                refuse(stmt, "the awaited phase is not that of the tile's use")
            op: Op = WaitEmpty(number) if empty else WaitFull(number)
            return PlacedOp(op, stmt, barrier, event.guard)
        case ArriveEvent(barrier=barrier, count=count, size=size):
            _check_slot(action.use, use, ring, event)
            if barrier is ring.empty and size:
                refuse(stmt, "bytes announced at the release of a slot")
            op = Release(number, count=count) if barrier is ring.empty else ArriveFull(size, number, count=count)
            return PlacedOp(op, stmt, barrier, event.guard)
        case FillEvent(buffer=buffer):
            _check_slot(action.use, use, ring, event)
            _check_slot(action.signal, use, ring, event)
            part = next(place for place, copy in enumerate(ring.copies) if copy is stmt)
            return PlacedOp(Copy(bytes_of(action.stmt), part, number), stmt, buffer, event.guard)
        case _:
            refuse(stmt, "an operation on a ring that is not allowed before or after a tile's loop")


def _check_slot(found: Index | None, use: Index, ring: RingStorage, event: Event) -> None:
    if found is not None and algebra.mod(found, ring.stages) is not algebra.mod(use, ring.stages):
        refuse(event.stmt, "a slot that is not that of the tile's use")
