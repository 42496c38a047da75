"""One role as sections of events, and which barriers and buffers make up which ring."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import prod

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Alloc, Buffer, Copy, For, Kernel, Role, Stmt, static, trips
from argus.core.proof.sync.roles.context import Ledger, refuse
from argus.core.proof.sync.roles.counters import Counting
from argus.core.proof.sync.roles.events import (
    Event,
    Filled,
    Laps,
    Met,
    Waited,
    events,
    laps,
    tiles_of,
    under_condition,
    use_loops,
)


@frozen(eq=False)
class Run:
    """A loop over uses. before: trips of the tile's loops that stand before it."""

    loop: For
    before: Index
    events: tuple[Event, ...]

    @property
    def trip(self) -> Index:
        """Of all the tile's loops together, counted from 0."""
        gone = algebra.sub(algebra.sym(self.loop.symbol), self.loop.start)
        return algebra.add(self.before, algebra.mul(gone, self.loop.step))

    @property
    def facts(self) -> tuple[Cond, ...]:
        k, loop = algebra.sym(self.loop.symbol), self.loop
        if loop.step > 0:
            return algebra.le(loop.start, k), algebra.lt(k, loop.stop)
        return algebra.le(k, loop.start), algebra.lt(loop.stop, k)


@frozen(eq=False)
class Parsed:
    """A role without counters. ahead, behind: events of a tile before and after its loops over uses, `runs`, which
    follow each other; end: after all tiles. trips: of all its loops; uses: of a ring in a tile; per_tile: the same, 0
    where the tile is left out; base: uses before the tile; facts: what holds in a tile that is worked on.
    """

    role: Role
    laps: Laps
    runs: tuple[Run, ...]
    ahead: tuple[Event, ...]
    behind: tuple[Event, ...]
    end: tuple[Event, ...]
    trips: Index
    uses: Index
    per_tile: Index
    base: Index
    worked: Cond
    facts: tuple[Cond, ...]

    @property
    def loop(self) -> For:
        return self.runs[0].loop

    @property
    def during(self) -> tuple[Event, ...]:
        return self.runs[0].events

    @property
    def laps_body(self) -> tuple[Stmt, ...]:
        """All of the role's statements, counters resolved."""
        middle = self.laps.tile if self.laps.tiles is None else (self.laps.tiles,)
        return (*self.laps.before, *middle, *self.laps.after)

    @property
    def fills(self) -> bool:
        return any(isinstance(event.happening, Filled) for event in self.during)

    @property
    def inside(self) -> tuple[Cond, ...]:
        """What holds in the first loop."""
        return (*self.facts, *self.runs[0].facts)


def parsed(role: Role, ledger: Ledger) -> Parsed:
    """Raises RefusedError where the role is not of that form."""
    tiles = tiles_of(role)
    body = Counting(ledger, tiles).resolved(role.body, ())
    found = laps(body, tiles)
    tile, worked = _worked(found.tile, role.agent)
    facts = (*_tile_facts(found.tiles), *(() if worked is algebra.TRUE else (worked,)))
    loops = use_loops(tile)
    if not loops:
        refuse(role.body[0], f"role `{role.name}` has no loop that works on barriers")
    first, last = (next(place for place, stmt in enumerate(tile) if stmt is loop) for loop in (loops[0], loops[-1]))
    for event in events(tuple(s for s in tile[first:last] if s not in loops), role.agent):
        if not isinstance(event.happening, Met):
            refuse(event.stmt, "work on barriers or products between two loops over uses")
    ahead, behind = (tuple(events(part, role.agent)) for part in (tile[:first], tile[last + 1 :]))
    runs = _runs(loops, role.agent, facts, ledger)
    total = algebra.add(runs[-1].before, ledger.settled(trips(runs[-1].loop), facts))
    uses = algebra.add(total, _peeled(ahead, runs[0].events, behind))
    per_tile = algebra.pick(worked, uses, 0)
    return Parsed(
        role,
        found,
        runs,
        ahead,
        behind,
        (*_none(found.before, role.agent), *_no_meetings(found.after, role.agent)),
        total,
        uses,
        per_tile,
        algebra.const(0) if tiles is None else ledger.base(per_tile, tiles),
        worked,
        facts,
    )


def _runs(loops: tuple[For, ...], threads: int, facts: tuple[Cond, ...], ledger: Ledger) -> tuple[Run, ...]:
    made: list[Run] = []
    before: Index = algebra.const(0)
    for loop in loops:
        made.append(Run(loop, before, tuple(events(loop.body, threads))))
        before = algebra.add(before, ledger.settled(trips(loop), facts))
    return tuple(made)


def _worked(tile: tuple[Stmt, ...], threads: int) -> tuple[tuple[Stmt, ...], Cond]:
    """What a tile does where it is worked on, and the condition of that."""
    branch = under_condition(tile)
    if branch is None:
        return tile, algebra.TRUE
    beside = (*(stmt for stmt in tile if stmt is not branch), *branch.otherwise)
    for event in events(beside, threads):
        refuse(event.stmt, "barriers or products beside the branch that works on a tile")
    return branch.then, branch.cond


def _peeled(ahead: tuple[Event, ...], during: tuple[Event, ...], behind: tuple[Event, ...]) -> int:
    """Uses of a tile beside its loops: as many as waits stand there for a barrier on which each trip waits too.

    A role that fills has none: what stands behind its loop may be the end of the ring.
    """
    if any(isinstance(event.happening, Filled) for event in during):
        return 0
    for event in during:
        if isinstance(event.happening, Waited) and event.guard is algebra.TRUE:
            barrier = event.happening.barrier
            return sum(isinstance(e.happening, Waited) and e.happening.barrier is barrier for e in (*ahead, *behind))
    return 0


def _no_meetings(body: tuple[Stmt, ...], threads: int) -> Iterator[Event]:
    return (event for event in events(body, threads) if not isinstance(event.happening, Met))


def _none(body: tuple[Stmt, ...], threads: int) -> Iterator[Event]:
    for event in events(body, threads):
        if isinstance(event.happening, Met):
            continue
        refuse(event.stmt, "barriers or products before the first tile")
    yield from ()


def _tile_facts(tiles: For | None) -> tuple[Cond, ...]:
    if tiles is None:
        return ()
    i = algebra.sym(tiles.symbol)
    return algebra.le(tiles.start, i), algebra.lt(i, tiles.stop)


@frozen(eq=False)
class Storage:
    """One ring. copies: what fills a slot, in order. filler: the role that does. once: a tile is one use of it."""

    number: int
    stages: int
    full: Buffer
    empty: Buffer
    copies: tuple[Copy, ...]
    filler: Parsed
    once: bool = False

    @property
    def buffers(self) -> frozenset[Buffer]:
        return frozenset(copy.target.buffer for copy in self.copies)


def storages(roles: tuple[Parsed, ...]) -> tuple[Storage, ...]:
    """The rings of a kernel: a full barrier on which copies land, and the barrier last waited for before these.

    Raises RefusedError where a barrier or a buffer serves two rings, or two roles fill one.
    """
    found: list[Storage] = []
    for role in roles:
        _found(found, role, role.during, once=False)
    for role in roles:
        _found(found, role, _apart(role.ahead, found), once=True)
    _judge_own(found)
    return tuple(found)


def _apart(events: tuple[Event, ...], found: list[Storage]) -> tuple[Event, ...]:
    """Those events that are not of a ring found already."""
    known = {barrier for ring in found for barrier in (ring.full, ring.empty)}
    return tuple(e for e in events if not isinstance(e.happening, Waited | Filled) or e.happening.barrier not in known)


def _found(found: list[Storage], role: Parsed, events: tuple[Event, ...], *, once: bool) -> None:
    waited: Waited | None = None
    for event in events:
        happening = event.happening
        if isinstance(happening, Waited):
            waited = happening
        elif isinstance(happening, Filled) and all(ring.full is not happening.barrier for ring in found):
            if waited is None:
                refuse(happening.stmt, "a copy into a slot that nothing has been waited for")
            found.append(_storage(len(found), role, events, happening, waited, once=once))
        elif isinstance(happening, Filled) and all(happening.stmt not in ring.copies for ring in found):
            refuse(happening.stmt, "a ring that two roles fill")


def _judge_own(rings: list[Storage]) -> None:
    for one, two in combinations(rings, 2):
        barriers = {one.full, one.empty} & {two.full, two.empty}
        if barriers or one.buffers & two.buffers:
            refuse(two.copies[0], "a barrier or a buffer that serves two rings")
    for ring in rings:
        if ring.full is ring.empty:
            refuse(ring.copies[0], "a ring whose slots are full and empty by one barrier")


def _storage(
    number: int, role: Parsed, events: tuple[Event, ...], first: Filled, waited: Waited, *, once: bool
) -> Storage:
    copies = tuple(
        event.happening.stmt
        for event in events
        if isinstance(event.happening, Filled) and event.happening.barrier is first.barrier
    )
    stages = static(first.barrier.shape[0])
    for copy in copies:
        if static(copy.target.buffer.shape[0]) != stages:
            refuse(copy, f"`{copy.target.buffer.name}` has another number of slots than its barriers")
    if static(waited.barrier.shape[0]) != stages:
        refuse(waited.stmt, f"`{waited.barrier.name}` has another number of slots than `{first.barrier.name}`")
    return Storage(number, stages, first.barrier, waited.barrier, copies, role, once)


def arrivals(kernel: Kernel, barrier: Buffer) -> int:
    """The count that a barrier is initialised with."""
    for stmt in kernel.prologue:
        if isinstance(stmt, Alloc) and stmt.buffer is barrier and stmt.count is not None:
            return stmt.count
    refuse(kernel.prologue[0], f"`{barrier.name}` is not initialised")


def bytes_of(copy: Copy) -> int:
    """Bytes of the box that a copy lands, also where it lies outside its tensor (trap T6)."""
    return prod(static(extent) for extent in copy.target.shape) * copy.target.buffer.dtype.bits // 8
