"""The trips that a role's loops lack: what stands before and after them, and what the role waits for at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Index
from argus.core.ir import Buffer, Stmt, static
from argus.core.proof.sync.roles.context import Ledger, refuse
from argus.core.proof.sync.roles.events import Arrived, Drained, Event, Looked, Met, Multiplied, Turned, Waited, reached
from argus.core.proof.sync.roles.parsed import Parsed, Storage
from argus.core.proof.sync.roles.uses import is_phase, is_use, phase_of, reads_of
from argus.core.protocol.ring import ArriveFull, Meet, Op, Read, Release, WaitEmpty, WaitFull, WaitGroups


@frozen(eq=False)
class Placed:
    """One operation of the loop, where it comes from, and on which array of slots or barriers it works.

    groups: of products that a read is made of. guards: of the operation in each of the tile's loops.
    """

    op: Op
    stmt: Stmt
    on: Buffer | None
    guard: Cond
    groups: int = 0
    guards: tuple[Cond, ...] = ()


@frozen(eq=False)
class _Done:
    """One operation beside the loops. reads: of which ring and use."""

    event: Event
    reads: tuple[Storage, Index | None] | None = None


def judge_trips(
    role: Parsed, ops: tuple[Placed, ...], rings: Sequence[Storage], ledger: Ledger
) -> Iterator[tuple[Stmt, Index]]:
    """What stands beside the loops, each with its use of the tile.

    Raises RefusedError unless loops, prologue and epilogue together make every operation once a use of a tile.

    Trip i makes the operations of uses i + ahead. The loops make trips 0 to `role.trips` - 1, of `role.uses`.
    """
    lacking = algebra.sub(role.uses, role.trips)
    assert isinstance(lacking, Const)
    for each in ops:
        for run, guard in zip(role.runs, each.guards, strict=True):
            wanted = _within(algebra.add(run.trip, each.op.ahead), role.uses)
            if not ledger.equivalent((*role.facts, *run.facts), guard, wanted):
                refuse(
                    each.stmt, "an operation on a ring under a condition that does not leave out just the uses beyond"
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
    ahead = _done(role.ahead, rings)
    _compare(role, before, ahead, rings, ledger)
    if left_over(ops):
        actual = [e for e in role.behind if not isinstance(e.happening, Turned | Met)]
        first = actual[0].happening if actual else None
        if not isinstance(first, Drained) or first.stmt.pending != 0 or actual[0].guard is not algebra.TRUE:
            refuse(role.loop, "groups may be left when the loop ends: the first thing after it is no `wgmma.wait(0)`")
    left = _done(role.behind, rings)
    # Of one tile, what ends a ring stands behind the loop too.
    number = len(behind) if role.laps.tiles is None and role.fills else len(left)
    _compare(role, behind, left[:number], rings, ledger)
    for (_, use), done in (*zip(before, ahead, strict=True), *zip(behind, left[:number], strict=True)):
        yield done.event.stmt, use


def _done(events: Sequence[Event], rings: Sequence[Storage]) -> list[_Done]:
    """What is done to rings with a use a trip; products of one use that follow each other are one read."""
    made: list[_Done] = []
    for event in events:
        happening = event.happening
        if isinstance(happening, Turned | Met | Drained):
            continue
        if isinstance(happening, Multiplied | Looked):
            for ring, use in reads_of(event, rings):
                same = made[-1].reads if made else None
                if not ring.once and not (same is not None and same[0] is ring and same[1] is use):
                    made.append(_Done(event, (ring, use)))
        elif not any(ring.once and happening.barrier in (ring.full, ring.empty) for ring in rings):
            made.append(_Done(event))
    return made


def left_over(ops: tuple[Placed, ...]) -> bool:
    """Whether groups of products may be left when the loop ends: no trip waits for all after its last product."""
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
    role: Parsed, wanted: Sequence[tuple[Placed, Index]], actual: list[_Done], rings: Sequence[Storage], ledger: Ledger
) -> None:
    if len(wanted) != len(actual):
        stmt = actual[0].event.stmt if actual else role.loop
        refuse(stmt, f"{len(actual)} operations on rings stand beside the loop, its trips lack {len(wanted)}")
    for (each, use), done in zip(wanted, actual, strict=True):
        if not _is(role, each, use, done, rings, ledger):
            refuse(done.event.stmt, "an operation beside the loop over uses that is not the one its trips lack")
        if not ledger.equivalent(role.facts, done.event.guard, _within(use, role.uses)):
            refuse(
                done.event.stmt,
                "an operation beside the loop over uses, under a condition that its use does not have",
            )


def _is(role: Parsed, each: Placed, use: Index, done: _Done, rings: Sequence[Storage], ledger: Ledger) -> bool:
    """Whether an event beside the loop is, where it happens, the operation `each` of that use of the tile."""
    happening = done.event.happening
    role = evolve(role, facts=(*role.facts, done.event.guard))
    at = algebra.add(role.base, use)
    if isinstance(each.op, WaitGroups | Meet):
        return False
    ring = rings[each.op.ring]
    match each.op, happening:
        case (WaitEmpty(), Waited(barrier=barrier)) | (WaitFull(), Waited(barrier=barrier)):
            plus = -1 if isinstance(each.op, WaitEmpty) else 0
            same = is_phase(ledger, role, happening, at, ring.stages, plus)
            return barrier is each.on and same and is_use(ledger, role, happening.use, at, ring.stages)
        case (Release(count=count), Arrived(barrier=barrier)) | (ArriveFull(count=count), Arrived(barrier=barrier)):
            size = each.op.size if isinstance(each.op, ArriveFull) else 0
            fits = happening.count == count and happening.size == size
            same = fits and reached(done.event.stmt) is reached(each.stmt)
            return barrier is each.on and same and is_use(ledger, role, happening.use, at, ring.stages)
        case Read(late=False), Multiplied() | Looked():
            assert done.reads is not None
            return done.reads[0] is ring and is_use(ledger, role, done.reads[1], at, ring.stages)
        case _:
            return False


def finishes(role: Parsed, ops: tuple[Placed, ...], rings: Sequence[Storage], ledger: Ledger) -> bool:
    """Whether the role waits at its end until the last uses of all slots of its rings have been given back."""
    end = _end(role, ops)
    if not end:
        return False
    wanted = [each for ring in rings if ring.filler is role for each in _last(role, ring, ledger)]
    found = [
        (e.happening.barrier, _slot(e.happening), e.happening.phase)
        for e in end
        if isinstance(e.happening, Waited) and e.guard is algebra.TRUE
    ]
    if found != wanted or len(found) != len(end):
        refuse(end[0].stmt, "what stands after the last tile is not the wait for every slot in turn")
    return True


def _slot(waited: Waited) -> Index:
    return algebra.const(0) if waited.use is None else algebra.mod(waited.use, static(waited.barrier.shape[0]))


def _last(role: Parsed, ring: Storage, ledger: Ledger) -> Iterator[tuple[Buffer, Index, Index]]:
    """The waits for the last use of every slot."""
    tiles = role.laps.tiles
    a_tile = algebra.pick(role.worked, 1, 0) if ring.once else role.per_tile
    total = a_tile if tiles is None else ledger.total(a_tile, tiles)
    for slot in range(ring.stages):
        use = algebra.add(total, slot)
        yield ring.empty, algebra.mod(use, ring.stages), phase_of(use, ring.stages, -1)


def _end(role: Parsed, ops: tuple[Placed, ...]) -> tuple[Event, ...]:
    """What comes after all tiles; of one tile, after the trips that its loop lacks."""
    if role.laps.tiles is not None:
        return role.end
    if not role.fills:
        return ()
    lacking = sum(max(0, -each.op.ahead) for each in ops if not isinstance(each.op, WaitGroups))
    quiet = Turned | Met | Drained
    return tuple(event for event in role.behind if not isinstance(event.happening, quiet))[lacking:]
