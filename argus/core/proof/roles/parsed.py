"""One role as sections of events, and which barriers and buffers make up which ring."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import prod

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Alloc, Buffer, Copy, For, Kernel, Role, Stmt, static, trips
from argus.core.proof.roles.counters import Counting
from argus.core.proof.roles.events import Event, Filled, Laps, Met, Waited, events, laps, tiles_of, use_loop
from argus.core.proof.roles.ledger import Ledger, refuse


@frozen(eq=False)
class Parsed:
    """A role without counters. ahead, during, behind: events of a tile before, in and after the loop over uses;
    end: after all tiles. uses: trips of the loop; base: uses of a ring before the tile; facts: what holds in a tile.
    """

    role: Role
    laps: Laps
    loop: For
    ahead: tuple[Event, ...]
    during: tuple[Event, ...]
    behind: tuple[Event, ...]
    end: tuple[Event, ...]
    uses: Index
    base: Index
    facts: tuple[Cond, ...]

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
        """What holds in the loop."""
        k = algebra.sym(self.loop.symbol)
        return (*self.facts, algebra.le(self.loop.start, k), algebra.lt(k, self.loop.stop))


def parsed(role: Role, ledger: Ledger) -> Parsed:
    """Raises RefusedError where the role is not of that form."""
    tiles = tiles_of(role)
    body = Counting(ledger, tiles).resolved(role.body, ())
    found = laps(body, tiles)
    loop = use_loop(found.tile)
    if loop is None:
        refuse(role.body[0], f"role `{role.name}` has no loop that works on barriers")
    at = next(place for place, stmt in enumerate(found.tile) if stmt is loop)
    facts = _tile_facts(found.tiles)
    uses = ledger.settled(trips(loop), facts)
    return Parsed(
        role,
        found,
        loop,
        tuple(events(found.tile[:at], role.agent)),
        tuple(events(loop.body, role.agent)),
        tuple(events(found.tile[at + 1 :], role.agent)),
        (*_none(found.before, role.agent), *_no_meetings(found.after, role.agent)),
        uses,
        algebra.const(0) if tiles is None else ledger.base(uses),
        facts,
    )


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
    """One ring. copies: what fills a slot, in order. filler: the role that does."""

    number: int
    stages: int
    full: Buffer
    empty: Buffer
    copies: tuple[Copy, ...]
    filler: Parsed

    @property
    def buffers(self) -> frozenset[Buffer]:
        return frozenset(copy.target.buffer for copy in self.copies)


def storages(roles: tuple[Parsed, ...]) -> tuple[Storage, ...]:
    """The rings of a kernel: a full barrier on which copies land, and the barrier last waited for before these.

    Raises RefusedError where a barrier or a buffer serves two rings, or two roles fill one.
    """
    found: list[Storage] = []
    for role in roles:
        waited: Waited | None = None
        for event in role.during:
            happening = event.happening
            if isinstance(happening, Waited):
                waited = happening
            elif isinstance(happening, Filled) and all(ring.full is not happening.barrier for ring in found):
                if waited is None:
                    refuse(happening.stmt, "a copy into a slot that nothing has been waited for")
                found.append(_storage(len(found), role, happening, waited))
            elif isinstance(happening, Filled) and all(happening.stmt not in ring.copies for ring in found):
                refuse(happening.stmt, "a ring that two roles fill")
    _judge_own(found)
    return tuple(found)


def _judge_own(rings: list[Storage]) -> None:
    for one, two in combinations(rings, 2):
        barriers = {one.full, one.empty} & {two.full, two.empty}
        if barriers or one.buffers & two.buffers:
            refuse(two.copies[0], "a barrier or a buffer that serves two rings")
    for ring in rings:
        if ring.full is ring.empty:
            refuse(ring.copies[0], "a ring whose slots are full and empty by one barrier")


def _storage(number: int, role: Parsed, first: Filled, waited: Waited) -> Storage:
    copies = tuple(
        event.happening.stmt
        for event in role.during
        if isinstance(event.happening, Filled) and event.happening.barrier is first.barrier
    )
    stages = static(first.barrier.shape[0])
    for copy in copies:
        if static(copy.target.buffer.shape[0]) != stages:
            refuse(copy, f"`{copy.target.buffer.name}` has another number of slots than its barriers")
    if static(waited.barrier.shape[0]) != stages:
        refuse(waited.stmt, f"`{waited.barrier.name}` has another number of slots than `{first.barrier.name}`")
    return Storage(number, stages, first.barrier, waited.barrier, copies, role)


def arrivals(kernel: Kernel, barrier: Buffer) -> int:
    """The count that a barrier is initialised with."""
    for stmt in kernel.prologue:
        if isinstance(stmt, Alloc) and stmt.buffer is barrier and stmt.count is not None:
            return stmt.count
    refuse(kernel.prologue[0], f"`{barrier.name}` is not initialised")


def bytes_of(copy: Copy) -> int:
    """Bytes of the box that a copy lands, also where it lies outside its tensor (trap T6)."""
    return prod(static(extent) for extent in copy.target.shape) * copy.target.buffer.dtype.bits // 8
