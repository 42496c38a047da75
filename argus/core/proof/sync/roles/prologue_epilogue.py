"""Checks prologue and epilogue of a role's loops: the peeled trips, and the waits at the role's end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Index
from argus.core.ir import Buffer, Stmt, static
from argus.core.proof.sync.roles.context import ProofContext, refuse
from argus.core.proof.sync.roles.events import (
    ArriveEvent,
    Event,
    MmaEvent,
    MmaWaitEvent,
    OrderEvent,
    ReadEvent,
    SyncEvent,
    WaitEvent,
    arrival_peer,
)
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage
from argus.core.proof.sync.roles.uses import is_phase, is_use, phase_of, ring_reads
from argus.core.protocol.ring import ArriveFull, NamedBarrierOp, Op, Read, Release, WaitEmpty, WaitFull, WaitGroups


@frozen(eq=False)
class PlacedOp:
    """One operation of the loop, its statement, and the array of stages or barriers `on` which it operates.

    groups: the number of product groups of a read. guards: the operation's guard in each of the tile's loops.
    """

    op: Op
    stmt: Stmt
    on: Buffer | None
    guard: Cond
    groups: int = 0
    guards: tuple[Cond, ...] = ()


@frozen(eq=False)
class _Peeled:
    """One operation outside the loops. reads: the ring and use that it reads."""

    event: Event
    reads: tuple[RingStorage, Index | None] | None = None


def check_trips(
    role: ParsedRole, ops: tuple[PlacedOp, ...], rings: Sequence[RingStorage], proof: ProofContext
) -> Iterator[tuple[Stmt, Index]]:
    """The statements outside the loops, each with its use of the tile.

    Raises RefusedError unless loops, prologue and epilogue together execute every operation once per use of a tile.

    Trip i executes the operations of uses i + ahead. The loops execute trips 0 to `role.trips` - 1, of `role.uses`.
    """
    lacking = algebra.sub(role.uses, role.trips)
    assert isinstance(lacking, Const)
    for each in ops:
        for run, guard in zip(role.use_loops, each.guards, strict=True):
            wanted = _within(algebra.add(run.trip, each.op.ahead), role.uses)
            if not proof.equivalent((*role.facts, *run.facts), guard, wanted):
                refuse(
                    each.stmt, "an operation on a ring whose condition does not skip exactly the uses beyond the tile"
                )
    on_ring = [each for each in ops if not isinstance(each.op, WaitGroups)]
    most = max((each.op.ahead for each in on_ring), default=0)
    least = min((each.op.ahead for each in on_ring), default=0)
    before = [
        (each, algebra.const(trip + each.op.ahead))
        for trip in range(-most, 0)
        for each in on_ring
        if trip + each.op.ahead >= 0
    ]
    behind = [
        (each, algebra.add(role.uses, trip + each.op.ahead))
        for trip in range(-lacking.value, -least)
        for each in on_ring
        if trip + each.op.ahead < 0
    ]
    ahead = _peeled_ops(role.prologue, rings)
    _compare(role, before, ahead, rings, proof)
    if leaves_groups(ops):
        actual = [e for e in role.epilogue if not isinstance(e.action, OrderEvent | SyncEvent)]
        first = actual[0].action if actual else None
        if not isinstance(first, MmaWaitEvent) or first.stmt.pending != 0 or actual[0].guard is not algebra.TRUE:
            refuse(role.loop, "groups may be in flight when the loop ends: it is not followed by `wgmma.wait(0)`")
    left = _peeled_ops(role.epilogue, rings)
    # In a kernel of one tile, the waits that end a ring are in the epilogue too.
    number = len(behind) if role.tile_loop.tiles is None and role.fills else len(left)
    _compare(role, behind, left[:number], rings, proof)
    for (_, use), done in (*zip(before, ahead, strict=True), *zip(behind, left[:number], strict=True)):
        yield done.event.stmt, use


def _peeled_ops(events: Sequence[Event], rings: Sequence[RingStorage]) -> list[_Peeled]:
    """The operations on rings with one use per trip; consecutive products of one use are one read."""
    made: list[_Peeled] = []
    for event in events:
        action = event.action
        if isinstance(action, OrderEvent | SyncEvent | MmaWaitEvent):
            continue
        if isinstance(action, MmaEvent | ReadEvent):
            for ring, use in ring_reads(event, rings):
                same = made[-1].reads if made else None
                if not ring.per_tile and not (same is not None and same[0] is ring and same[1] is use):
                    made.append(_Peeled(event, (ring, use)))
        elif not any(ring.per_tile and action.barrier in (ring.full, ring.empty) for ring in rings):
            made.append(_Peeled(event))
    return made


def leaves_groups(ops: tuple[PlacedOp, ...]) -> bool:
    """Whether product groups may be in flight at the end of the loop: no trip waits for all after its last product."""
    left = False
    for each in ops:
        if isinstance(each.op, Read) and each.op.late:
            left = True
        elif isinstance(each.op, WaitGroups) and each.op.pending == 0 and each.guard is algebra.TRUE:
            left = False
    return left


def _within(use: Index, uses: Index) -> Cond:
    return algebra.all_of((algebra.le(0, use), algebra.lt(use, uses)))


def _compare(
    role: ParsedRole,
    wanted: Sequence[tuple[PlacedOp, Index]],
    actual: list[_Peeled],
    rings: Sequence[RingStorage],
    proof: ProofContext,
) -> None:
    if len(wanted) != len(actual):
        stmt = actual[0].event.stmt if actual else role.loop
        refuse(
            stmt,
            f"{len(actual)} operations on rings are outside the loop, but {len(wanted)} are missing from its trips",
        )
    for (each, use), done in zip(wanted, actual, strict=True):
        if not _is_op(role, each, use, done, rings, proof):
            refuse(
                done.event.stmt, "an operation outside the loop over uses that is not the one missing from its trips"
            )
        if not proof.equivalent(role.facts, done.event.guard, _within(use, role.uses)):
            refuse(
                done.event.stmt,
                "an operation outside the loop over uses, under a condition that its use does not have",
            )


def _is_op(
    role: ParsedRole, each: PlacedOp, use: Index, done: _Peeled, rings: Sequence[RingStorage], proof: ProofContext
) -> bool:
    """Whether an event outside the loop is, under its guard, the operation `each` of that use of the tile."""
    action = done.event.action
    role = evolve(role, facts=(*role.facts, done.event.guard))
    at = algebra.add(role.base, use)
    if isinstance(each.op, WaitGroups | NamedBarrierOp):
        return False
    ring = rings[each.op.ring]
    match each.op, action:
        case (WaitEmpty(), WaitEvent(barrier=barrier)) | (WaitFull(), WaitEvent(barrier=barrier)):
            plus = -1 if isinstance(each.op, WaitEmpty) else 0
            same = is_phase(proof, role, action, at, ring.stages, plus)
            return barrier is each.on and same and is_use(proof, role, action.use, at, ring.stages)
        case (Release(count=count), ArriveEvent(barrier=barrier)) | (
            ArriveFull(count=count),
            ArriveEvent(barrier=barrier),
        ):
            size = each.op.size if isinstance(each.op, ArriveFull) else 0
            fits = action.count == count and action.size == size
            same = fits and arrival_peer(done.event.stmt) is arrival_peer(each.stmt)
            return barrier is each.on and same and is_use(proof, role, action.use, at, ring.stages)
        case Read(late=False), MmaEvent() | ReadEvent():
            assert done.reads is not None
            return done.reads[0] is ring and is_use(proof, role, done.reads[1], at, ring.stages)
        case _:
            return False


def drains_at_end(
    role: ParsedRole, ops: tuple[PlacedOp, ...], rings: Sequence[RingStorage], proof: ProofContext
) -> bool:
    """Whether the role waits at its end until the last uses of all stages of its rings have been released."""
    end = _end_events(role, ops)
    if not end:
        return False
    wanted = [each for ring in rings if ring.producer is role for each in _final_waits(role, ring, proof)]
    found = [
        (e.action.barrier, _slot(e.action), e.action.phase)
        for e in end
        if isinstance(e.action, WaitEvent) and e.guard is algebra.TRUE
    ]
    if found != wanted or len(found) != len(end):
        refuse(end[0].stmt, "the statements after the last tile are not the waits for every slot in order")
    return True


def _slot(waited: WaitEvent) -> Index:
    return algebra.const(0) if waited.use is None else algebra.mod(waited.use, static(waited.barrier.shape[0]))


def _final_waits(role: ParsedRole, ring: RingStorage, proof: ProofContext) -> Iterator[tuple[Buffer, Index, Index]]:
    """The waits for the last use of every stage."""
    tiles = role.tile_loop.tiles
    a_tile = algebra.pick(role.active, 1, 0) if ring.per_tile else role.per_tile
    total = a_tile if tiles is None else proof.total(a_tile, tiles)
    for slot in range(ring.stages):
        use = algebra.add(total, slot)
        yield ring.empty, algebra.mod(use, ring.stages), phase_of(use, ring.stages, -1)


def _end_events(role: ParsedRole, ops: tuple[PlacedOp, ...]) -> tuple[Event, ...]:
    """The events after all tiles; in a kernel of one tile, those after the peeled trips."""
    if role.tile_loop.tiles is not None:
        return role.after_tiles
    if not role.fills:
        return ()
    lacking = sum(max(0, -each.op.ahead) for each in ops if not isinstance(each.op, WaitGroups))
    quiet = OrderEvent | SyncEvent | MmaWaitEvent
    return tuple(event for event in role.epilogue if not isinstance(event.action, quiet))[lacking:]
