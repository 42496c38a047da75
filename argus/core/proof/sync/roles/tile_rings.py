"""Rings of which a tile is one use: filled before the tile's loop, held over it, given back behind it.

That the fill and the wait stand before everything else on rings keeps the tiles' order: a wait inside a tile is then
for what comes in the same tile or in one before. Source: proof-methods 3.6; listing 2.4 of `reference/ir.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Index
from argus.core.proof.sync.roles.context import Ledger, refuse
from argus.core.proof.sync.roles.events import Arrived, Drained, Event, Filled, Looked, Met, Multiplied, Turned, Waited
from argus.core.proof.sync.roles.parsed import Parsed, Storage, bytes_of
from argus.core.proof.sync.roles.prologue_epilogue import Placed
from argus.core.proof.sync.roles.uses import phase_of, reads_of
from argus.core.protocol.ring import ArriveFull, Copy, Op, Read, Release, WaitEmpty, WaitFull


@frozen(eq=False)
class Once:
    """What a role does once a tile, before its trips and after them."""

    before: tuple[Placed, ...] = field(default=())
    after: tuple[Placed, ...] = field(default=())


def held(role: Parsed, rings: Sequence[Storage], ledger: Ledger) -> Once:
    """Raises RefusedError where such a ring is worked on in another order, or at another use than the tile's."""
    once = tuple(ring for ring in rings if ring.once)
    if not once:
        return Once()
    use = _use(role, ledger)
    before = tuple(_placed(each, ring, use) for each, ring in _of(role.ahead, once))
    after = tuple(_placed(each, ring, use) for each, ring in _of(role.behind, once) if not _is_end(role, ring, each))
    _judge_order(role, rings, once)
    for each in (*before, *after):
        early = isinstance(each.op, WaitEmpty | WaitFull | ArriveFull | Copy)
        if early != (each in before):
            refuse(each.stmt, "a ring of which a tile is one use is filled, waited for or given back out of place")
    reads = [
        Placed(Read(ring.number, late=False), each.stmt, None, algebra.TRUE)
        for ring in once
        if (each := next((p for p in after if isinstance(p.op, Release) and p.op.ring == ring.number), None))
    ]
    return Once(before, (*reads, *after))


def _use(role: Parsed, ledger: Ledger) -> Index:
    tiles = role.laps.tiles
    return algebra.const(0) if tiles is None else ledger.base(algebra.pick(role.worked, 1, 0), tiles)


def _of(events: Sequence[Event], once: Sequence[Storage]) -> Iterator[tuple[Event, Storage]]:
    for event in events:
        if isinstance(event.happening, Waited | Arrived | Filled):
            barrier = event.happening.barrier
            ring = next((each for each in once if barrier in (each.full, each.empty)), None)
            if ring is not None:
                yield event, ring


def _is_end(role: Parsed, ring: Storage, event: Event) -> bool:
    """Of one tile, the waits for what has been given back at last stand behind the loop too: `finishes` reads them."""
    return role.laps.tiles is None and ring.filler is role and isinstance(event.happening, Waited)


def _judge_order(role: Parsed, rings: Sequence[Storage], once: Sequence[Storage]) -> None:
    """Waits come before all else on rings, reads lie between the wait and the release."""
    held_now: set[int] = set()
    begun = False
    for event in (*role.ahead, *(each for run in role.runs for each in run.events), *role.behind):
        match event.happening:
            case Waited(barrier=barrier) | Arrived(barrier=barrier) | Filled(barrier=barrier):
                ring = next((each for each in once if barrier in (each.full, each.empty)), None)
                if ring is None:
                    begun = True
                elif isinstance(event.happening, Waited) and barrier is ring.full:
                    held_now.add(ring.number)
                elif isinstance(event.happening, Arrived) and barrier is ring.empty:
                    held_now.discard(ring.number)
                if (
                    ring is not None
                    and isinstance(event.happening, Waited)
                    and begun
                    and not _is_end(role, ring, event)
                ):
                    refuse(event.stmt, "a ring of which a tile is one use, waited for after other rings are used")
            case Multiplied() | Looked():
                for ring, _ in reads_of(event, rings):
                    if ring.once and ring.number not in held_now:
                        refuse(event.stmt, "a ring of which a tile is one use is read while it is not held")
            case Turned() if not begun:
                refuse(event.stmt, "turns taken before a ring of which a tile is one use")
            case Met() | Drained() | Turned():
                pass


def _placed(event: Event, ring: Storage, use: Index) -> Placed:
    happening, stmt, number = event.happening, event.stmt, ring.number
    if event.guard is not algebra.TRUE:
        refuse(stmt, "a ring of which a tile is one use, worked on under a condition")
    match happening:
        case Waited(barrier=barrier):
            empty = barrier is ring.empty
            _judge_slot(happening.use, use, ring, event)
            if happening.phase is not phase_of(use, ring.stages, -1 if empty else 0):
                refuse(stmt, "the phase waited for is not that of the tile's use")
            op: Op = WaitEmpty(number) if empty else WaitFull(number)
            return Placed(op, stmt, barrier, event.guard)
        case Arrived(barrier=barrier, count=count, size=size):
            _judge_slot(happening.use, use, ring, event)
            if barrier is ring.empty and size:
                refuse(stmt, "bytes announced where slots are given back")
            op = Release(number, count=count) if barrier is ring.empty else ArriveFull(size, number, count=count)
            return Placed(op, stmt, barrier, event.guard)
        case Filled(buffer=buffer):
            _judge_slot(happening.use, use, ring, event)
            _judge_slot(happening.signal, use, ring, event)
            part = next(place for place, copy in enumerate(ring.copies) if copy is stmt)
            return Placed(Copy(bytes_of(happening.stmt), part, number), stmt, buffer, event.guard)
        case _:
            refuse(stmt, "an operation on a ring that has no place before or after a tile's loop")


def _judge_slot(found: Index | None, use: Index, ring: Storage, event: Event) -> None:
    if found is not None and algebra.mod(found, ring.stages) is not algebra.mod(use, ring.stages):
        refuse(event.stmt, "a slot that is not that of the tile's use")
