"""Parses a role into sections of events, and groups barriers and buffers into rings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import prod

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Alloc, Buffer, Copy, For, Kernel, Role, Stmt, static, trips
from argus.core.proof.sync.roles.context import ProofContext, refuse
from argus.core.proof.sync.roles.counters import CounterResolver
from argus.core.proof.sync.roles.events import (
    Event,
    FillEvent,
    SyncEvent,
    TileLoop,
    WaitEvent,
    conditional_tile,
    events_of,
    split_tile_loop,
    tile_loop_of,
    use_loops,
)


@frozen(eq=False)
class UseLoop:
    """A loop over uses. before: the total trip count of the tile's earlier loops."""

    loop: For
    before: Index
    events: tuple[Event, ...]

    @property
    def trip(self) -> Index:
        """The trip number over all loops of the tile, from 0."""
        gone = algebra.sub(algebra.sym(self.loop.symbol), self.loop.start)
        return algebra.add(self.before, algebra.mul(gone, self.loop.step))

    @property
    def facts(self) -> tuple[Cond, ...]:
        k, loop = algebra.sym(self.loop.symbol), self.loop
        if loop.step > 0:
            return algebra.le(loop.start, k), algebra.lt(k, loop.stop)
        return algebra.le(k, loop.start), algebra.lt(loop.stop, k)


@frozen(eq=False)
class ParsedRole:
    """A role without counters, as sections of events.

    use_loops: the consecutive loops over uses of a tile. prologue, epilogue: a tile's events before and after them.
    after_tiles: the events after all tiles. trips: of all loops of a tile. uses: of a ring in an active tile.
    per_tile: `uses`, or 0 in a skipped tile. base: uses before the tile. active: that the tile is not skipped.
    facts: in an active tile.
    """

    role: Role
    tile_loop: TileLoop
    use_loops: tuple[UseLoop, ...]
    prologue: tuple[Event, ...]
    epilogue: tuple[Event, ...]
    after_tiles: tuple[Event, ...]
    trips: Index
    uses: Index
    per_tile: Index
    base: Index
    active: Cond
    facts: tuple[Cond, ...]

    @property
    def loop(self) -> For:
        return self.use_loops[0].loop

    @property
    def loop_events(self) -> tuple[Event, ...]:
        return self.use_loops[0].events

    @property
    def statements(self) -> tuple[Stmt, ...]:
        """All statements of the role, with counters resolved."""
        middle = self.tile_loop.tile if self.tile_loop.tiles is None else (self.tile_loop.tiles,)
        return (*self.tile_loop.before, *middle, *self.tile_loop.after)

    @property
    def fills(self) -> bool:
        return any(isinstance(event.action, FillEvent) for event in self.loop_events)

    @property
    def inside(self) -> tuple[Cond, ...]:
        """The facts in the first loop."""
        return (*self.facts, *self.use_loops[0].facts)


def parse_role(role: Role, proof: ProofContext) -> ParsedRole:
    """Parses a role. Raises RefusedError where it does not have that form."""
    tiles = tile_loop_of(role)
    body = CounterResolver(proof, tiles).resolve(role.body, ())
    found = split_tile_loop(body, tiles)
    tile, worked = _conditional_body(found.tile, role.agent)
    facts = (*_tile_facts(found.tiles), *(() if worked is algebra.TRUE else (worked,)))
    loops = use_loops(tile)
    if not loops:
        refuse(role.body[0], f"role `{role.name}` has no loop that uses barriers")
    first, last = (next(place for place, stmt in enumerate(tile) if stmt is loop) for loop in (loops[0], loops[-1]))
    for event in events_of(tuple(s for s in tile[first:last] if s not in loops), role.agent):
        if not isinstance(event.action, SyncEvent):
            refuse(event.stmt, "barriers or products between two loops over uses")
    ahead, behind = (tuple(events_of(part, role.agent)) for part in (tile[:first], tile[last + 1 :]))
    runs = _use_loops(loops, role.agent, facts, proof)
    total = algebra.add(runs[-1].before, proof.simplify(trips(runs[-1].loop), facts))
    uses = algebra.add(total, _peeled_uses(ahead, runs[0].events, behind))
    per_tile = algebra.pick(worked, uses, 0)
    return ParsedRole(
        role,
        found,
        runs,
        ahead,
        behind,
        (*_no_events(found.before, role.agent), *_without_syncs(found.after, role.agent)),
        total,
        uses,
        per_tile,
        algebra.const(0) if tiles is None else proof.base(per_tile, tiles),
        worked,
        facts,
    )


def _use_loops(
    loops: tuple[For, ...], threads: int, facts: tuple[Cond, ...], proof: ProofContext
) -> tuple[UseLoop, ...]:
    made: list[UseLoop] = []
    before: Index = algebra.const(0)
    for loop in loops:
        made.append(UseLoop(loop, before, tuple(events_of(loop.body, threads))))
        before = algebra.add(before, proof.simplify(trips(loop), facts))
    return tuple(made)


def _conditional_body(tile: tuple[Stmt, ...], threads: int) -> tuple[tuple[Stmt, ...], Cond]:
    """The statements of an active tile, and the condition under which a tile is active."""
    branch = conditional_tile(tile)
    if branch is None:
        return tile, algebra.TRUE
    outside = (*(stmt for stmt in tile if stmt is not branch), *branch.otherwise)
    for event in events_of(outside, threads):
        if not isinstance(event.action, SyncEvent):
            refuse(event.stmt, "barriers or products outside the branch that processes a tile")
    return branch.then, branch.cond


def _peeled_uses(ahead: tuple[Event, ...], during: tuple[Event, ...], behind: tuple[Event, ...]) -> int:
    """The number of peeled uses of a tile: the waits outside its loops for a barrier on which each trip waits.

    A producer has none: waits after its loop may be the end of the ring.
    """
    if any(isinstance(event.action, FillEvent) for event in during):
        return 0
    for event in during:
        if isinstance(event.action, WaitEvent) and event.guard is algebra.TRUE:
            barrier = event.action.barrier
            return sum(isinstance(e.action, WaitEvent) and e.action.barrier is barrier for e in (*ahead, *behind))
    return 0


def _without_syncs(body: tuple[Stmt, ...], threads: int) -> Iterator[Event]:
    return (event for event in events_of(body, threads) if not isinstance(event.action, SyncEvent))


def _no_events(body: tuple[Stmt, ...], threads: int) -> Iterator[Event]:
    for event in events_of(body, threads):
        if isinstance(event.action, SyncEvent):
            continue
        refuse(event.stmt, "barriers or products before the first tile")
    yield from ()


def _tile_facts(tiles: For | None) -> tuple[Cond, ...]:
    if tiles is None:
        return ()
    i = algebra.sym(tiles.symbol)
    return algebra.le(tiles.start, i), algebra.lt(i, tiles.stop)


@frozen(eq=False)
class RingStorage:
    """One ring. copies: the fill of a stage, in order. producer: the producer role. per_tile: one use per tile."""

    number: int
    stages: int
    full: Buffer
    empty: Buffer
    copies: tuple[Copy, ...]
    producer: ParsedRole
    per_tile: bool = False

    @property
    def buffers(self) -> frozenset[Buffer]:
        return frozenset(copy.target.buffer for copy in self.copies)


def find_rings(roles: tuple[ParsedRole, ...]) -> tuple[RingStorage, ...]:
    """The rings of a kernel: a full barrier on which copies complete, and the barrier last awaited before them.

    Raises RefusedError where a barrier or a buffer belongs to two rings, or two roles fill one ring.
    """
    found: list[RingStorage] = []
    for role in roles:
        _add_rings(found, role, role.loop_events, once=False)
    for role in roles:
        _add_rings(found, role, _unassigned(role.prologue, found), once=True)
    _check_disjoint(found)
    return tuple(found)


def _unassigned(events: tuple[Event, ...], found: list[RingStorage]) -> tuple[Event, ...]:
    """The events that do not belong to an already known ring."""
    known = {barrier for ring in found for barrier in (ring.full, ring.empty)}
    return tuple(e for e in events if not isinstance(e.action, WaitEvent | FillEvent) or e.action.barrier not in known)


def _add_rings(found: list[RingStorage], role: ParsedRole, events: tuple[Event, ...], *, once: bool) -> None:
    waited: WaitEvent | None = None
    for event in events:
        action = event.action
        if isinstance(action, WaitEvent):
            waited = action
        elif isinstance(action, FillEvent) and all(ring.full is not action.barrier for ring in found):
            if waited is None:
                refuse(action.stmt, "a copy into a slot without a wait before it")
            found.append(_storage(len(found), role, events, action, waited, once=once))
        elif isinstance(action, FillEvent) and all(action.stmt not in ring.copies for ring in found):
            refuse(action.stmt, "a ring that two roles fill")


def _check_disjoint(rings: list[RingStorage]) -> None:
    for one, two in combinations(rings, 2):
        barriers = {one.full, one.empty} & {two.full, two.empty}
        if barriers or one.buffers & two.buffers:
            refuse(two.copies[0], "a barrier or a buffer that belongs to two rings")
    for ring in rings:
        if ring.full is ring.empty:
            refuse(ring.copies[0], "a ring with one barrier as both its full and its empty barrier")


def _storage(
    number: int, role: ParsedRole, events: tuple[Event, ...], first: FillEvent, waited: WaitEvent, *, once: bool
) -> RingStorage:
    copies = tuple(
        event.action.stmt
        for event in events
        if isinstance(event.action, FillEvent) and event.action.barrier is first.barrier
    )
    stages = static(first.barrier.shape[0])
    for copy in copies:
        if static(copy.target.buffer.shape[0]) != stages:
            refuse(copy, f"`{copy.target.buffer.name}` and its barriers have different numbers of slots")
    if static(waited.barrier.shape[0]) != stages:
        refuse(waited.stmt, f"`{waited.barrier.name}` and `{first.barrier.name}` have different numbers of slots")
    return RingStorage(number, stages, first.barrier, waited.barrier, copies, role, once)


def arrivals(kernel: Kernel, barrier: Buffer) -> int:
    """The arrival count with which a barrier is initialised."""
    for stmt in kernel.prologue:
        if isinstance(stmt, Alloc) and stmt.buffer is barrier and stmt.count is not None:
            return stmt.count
    refuse(kernel.prologue[0], f"`{barrier.name}` is not initialised")


def bytes_of(copy: Copy) -> int:
    """The bytes of a copy's whole box, including the part outside the tensor (trap T6)."""
    return prod(static(extent) for extent in copy.target.shape) * copy.target.buffer.dtype.bits // 8
