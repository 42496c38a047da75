"""Extracts the ring protocol of a kernel's roles from its statements alone, whatever construct created them.

Each operation on a ring is in the loop over uses at a fixed distance `ahead` of the trip; prologue and epilogue must be
exactly the peeled trips. Anything else is refused, with its line.
Source: proof-methods 3.2, 3.3 (scope).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Await, Buffer, Kernel, Stmt
from argus.core.proof.sync.roles.clusters import cluster_protocol
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
from argus.core.proof.sync.roles.in_flight_mma import tracks_products
from argus.core.proof.sync.roles.in_loop_order import find_in_loop_order, insert_order_ops
from argus.core.proof.sync.roles.parsed import ParsedRole, RingStorage, UseLoop, arrivals, bytes_of
from argus.core.proof.sync.roles.prologue_epilogue import PlacedOp, check_trips, drains_at_end
from argus.core.proof.sync.roles.tile_rings import TileOps, tile_ring_ops
from argus.core.proof.sync.roles.uses import UseResolver, ring_of_barrier, ring_reads
from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    Op,
    Protocol,
    Read,
    Release,
    Ring,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
)
from argus.core.walk import symbols


@frozen(eq=False)
class ExtractedProtocol:
    """A protocol with the statements of its operations.

    placed: the operations of each role, in the order of the protocol's roles. uses: for each wait, its use of the tile.
    """

    protocol: Protocol
    placed: tuple[tuple[PlacedOp, ...], ...]
    uses: Mapping[Stmt, Index]

    def stmt_of(self, *kinds: type[Op]) -> Stmt:
        """The first statement of an operation of these kinds, or else the first of any kind."""
        every = [each for role in self.placed for each in role]
        return next((each.stmt for each in every if isinstance(each.op, kinds)), every[0].stmt)


def extract_protocol(
    kernel: Kernel,
    roles: Sequence[ParsedRole],
    rings: Sequence[RingStorage],
    ordered: frozenset[ParsedRole],
    proof: ProofContext,
) -> ExtractedProtocol:
    """The protocol of all roles. ordered: the roles whose agents are ordered by turns. Raises RefusedError."""
    made: list[Role] = []
    placed: list[tuple[PlacedOp, ...]] = []
    uses: dict[Stmt, Index] = {}
    chains = tuple(
        chain for role in roles if (chain := find_in_loop_order(kernel, role, len(rings), proof)) is not None
    )
    for role in roles:
        if role.fills and len(role.use_loops) > 1:
            refuse(role.use_loops[1].loop, f"role `{role.role.name}` fills rings in several loops")
        chain = next((each for each in chains if each.role is role), None)
        waits: list[tuple[Stmt, Index]] = []
        ops = _ops(role, rings, proof, waits)
        waits.extend(check_trips(role, ops, rings, proof))
        once = tile_ring_ops(role, rings, proof)
        waits.extend((each.stmt, algebra.const(0)) for each in once.before)
        for stmt, use in waits:
            if isinstance(stmt, Await):
                if stmt in uses:
                    refuse(stmt, "one wait statement that occurs twice")
                uses[stmt] = use
        for agent in range(role.role.agents):
            own = ops if chain is None else insert_order_ops(role, ops, chain, agent)
            made.append(_role(role, agent, own, rings, once, turn=role in ordered, proof=proof))
            placed.append((*once.before, *own, *once.after))
    least = 1 if proof.holds(roles[0].facts, algebra.le(1, roles[0].uses)) else 0
    persistent = roles[0].tile_loop.tiles is not None
    sizes = (*(_ring(kernel, ring) for ring in rings), *(chain.ring for chain in chains for _ in chain.pairs))
    if kernel.peers > 1:
        if chains:
            refuse(chains[0].role.loop, "turns in a loop over uses, in a cluster")
        sizes, made, placed = cluster_protocol(kernel, rings, sizes, made, placed)
    return ExtractedProtocol(Protocol(sizes, tuple(made), min_trips=least, persistent=persistent), tuple(placed), uses)


def _ring(kernel: Kernel, ring: RingStorage) -> Ring:
    parts = tuple(bytes_of(copy) for copy in ring.copies)
    return Ring(ring.stages, parts, arrivals(kernel, ring.full), arrivals(kernel, ring.empty), per_tile=ring.per_tile)


def _role(
    role: ParsedRole,
    agent: int,
    ops: tuple[PlacedOp, ...],
    rings: Sequence[RingStorage],
    once: TileOps,
    *,
    turn: bool,
    proof: ProofContext,
) -> Role:
    before, body, after = (tuple(each.op for each in part) for part in (once.before, ops, once.after))
    share, ends = _share(role, agent), drains_at_end(role, ops, rings, proof)
    return Role(protocol_name(role, agent), body, share=share, turn=turn, finishes=ends, before=before, after=after)


def protocol_name(role: ParsedRole, agent: int) -> str:
    """The name of an agent in the protocol."""
    own = role.role
    return f"role {own.name}" if own.agents == 1 else f"role {own.name}[{agent}]"


def _share(role: ParsedRole, agent: int) -> tuple[int, int]:
    """The tiles of an agent as (first, step): all, or every n-th from its number on."""
    tiles, own = role.tile_loop.tiles, role.role
    if tiles is None or (tiles.start is algebra.const(0) and tiles.step == 1):
        return 0, 1
    if tiles.start is algebra.sym(own.number) and tiles.step == own.agents:
        return agent, own.agents
    refuse(tiles, f"the agents of `{own.name}` process neither all tiles nor every n-th tile each")


# -- operations of the loop ----------------------------------------------------------------------------------


def _ops(
    role: ParsedRole, rings: Sequence[RingStorage], proof: ProofContext, waits: list[tuple[Stmt, Index]]
) -> tuple[PlacedOp, ...]:
    """The operations of each of the role's loops, which must be equal; adds each wait with its use to `waits`.

    Raises RefusedError where the loops differ.
    """
    first, *others = (_ops_of(role, run, rings, proof) for run in role.use_loops)
    for run, ops in zip(role.use_loops, (first, *others), strict=True):
        waits.extend((each.stmt, algebra.add(run.trip, each.op.ahead)) for each in ops)
    for run, ops in zip(role.use_loops[1:], others, strict=True):
        if [(each.op, each.on) for each in ops] != [(each.op, each.on) for each in first]:
            refuse(run.loop, "loops over uses of one tile that differ in their operations on rings")
    _check_ordinary_reads(role, rings)
    return tuple(evolve(each, guards=guards) for each, guards in zip(first, _guards(first, others), strict=True))


def _guards(first: tuple[PlacedOp, ...], others: list[tuple[PlacedOp, ...]]) -> Iterator[tuple[Cond, ...]]:
    for place, each in enumerate(first):
        yield (each.guard, *(ops[place].guard for ops in others))


def _ops_of(role: ParsedRole, run: UseLoop, rings: Sequence[RingStorage], proof: ProofContext) -> tuple[PlacedOp, ...]:
    made: list[PlacedOp] = []
    ahead: dict[int, int] = {}
    reader = UseResolver(role, run, tuple(rings), proof)
    queued = not tracks_products(role, rings)
    for event in run.events:
        action = event.action
        if isinstance(action, SyncEvent | OrderEvent) or (isinstance(action, MmaWaitEvent) and not queued):
            continue
        if isinstance(action, MmaEvent | ReadEvent):
            _read(reader, made, event, ahead, late=queued and isinstance(action, MmaEvent))
            continue
        if not isinstance(action, MmaWaitEvent) and _is_tile_ring_event(action, rings):
            refuse(event.stmt, "a ring with one use per tile, used in the loop over uses")
        made.append(_placed(reader, event, ahead))
    counts = {each.groups for each in made if isinstance(each.op, Read) and each.op.late}
    if len(counts) > 1:
        refuse(made[0].stmt, "uses that are read by different numbers of products")
    groups = next(iter(counts), 1)
    return tuple(_groups_as_uses(each, groups) for each in made)


def _is_tile_ring_event(action: WaitEvent | ArriveEvent | FillEvent, rings: Sequence[RingStorage]) -> bool:
    return any(ring.per_tile and action.barrier in (ring.full, ring.empty) for ring in rings)


def _read(reader: UseResolver, made: list[PlacedOp], event: Event, ahead: dict[int, int], *, late: bool) -> None:
    """Adds a read of each ring that the product or load reads, or merges it into an existing read of the same use."""
    for ring, use in ring_reads(event, reader.rings):
        if ring.per_tile:
            continue
        last = _previous_read(reader, made, event, ring, use, late=late)
        if last is not None:
            found = made[last]
            groups = found.groups + int(late and _is_a_group_of_each_use(event, found))
            made[last] = evolve(found, op=_as_late(found.op, late=late), groups=groups)
            continue
        at = reader.ahead(use, ring, event.stmt, ahead.get(ring.number, 0))
        made.append(PlacedOp(Read(ring.number, at, late=late), event.stmt, None, event.guard, groups=int(late)))


def _is_a_group_of_each_use(event: Event, first: PlacedOp) -> bool:
    """Whether a product is executed where the first of its use is. With fewer counted, a wait leaves more in flight."""
    return event.guard is first.guard


def _as_late(op: Op, *, late: bool) -> Op:
    return evolve(op, late=op.late or late) if isinstance(op, Read) else op


def _check_ordinary_reads(role: ParsedRole, rings: Sequence[RingStorage]) -> None:
    """Trap T4: an arrival by one thread releases only its own ordinary reads; those of others need a barrier before it.

    An arrival by each thread releases what all have read: the phase counts every thread of the agent (I8).
    Checked on every path through the tile: each of its loops may run any number of times.
    """
    if role.role.agent == 1:
        return
    loose = _unsynced_after_path(role.prologue, frozenset(), rings)
    for run in role.use_loops:
        loose = _unsynced_after_loop(run.events, loose, rings)
    _unsynced_after_path(role.epilogue, loose, rings)


def _unsynced_after_loop(
    events: Sequence[Event], entry: frozenset[Buffer], rings: Sequence[RingStorage]
) -> frozenset[Buffer]:
    """The buffers that may have been read without a barrier since, at the end of the loop."""
    loose = entry
    while (following := loose | _unsynced_after_path(events, loose, rings)) != loose:
        loose = following
    return loose


def _unsynced_after_path(
    path: Sequence[Event], entry: frozenset[Buffer], rings: Sequence[RingStorage]
) -> frozenset[Buffer]:
    loose = set(entry)
    for event in path:
        match event.action:
            case ReadEvent(buffer=buffer):
                loose.add(buffer)
            case SyncEvent() if event.guard is algebra.TRUE:
                loose.clear()
            case ArriveEvent(barrier=barrier) if not _by_each_reader(event):
                ring = next((each for each in rings if each.empty is barrier), None)
                if ring is not None and loose & ring.buffers:
                    refuse(event.stmt, _RELEASED_EARLY)
            case _:
                pass
    return frozenset(loose)


_RELEASED_EARLY = (
    "a slot is released by one thread while others may still read it: put `sync()` before the release, or let each of "
    "the reading threads arrive at a barrier that expects them all (trap T4)"
)


def _by_each_reader(event: Event) -> bool:
    """Whether every thread of the agent arrives, after its own reads."""
    one_of_them = any(symbol.kind in ("thread", "wave") for symbol in symbols(event.guard))
    return isinstance(event.action, ArriveEvent) and event.action.by_each and not one_of_them


def _groups_as_uses(each: PlacedOp, groups: int) -> PlacedOp:
    """Converts a count of pending groups to uses: each use is read by `groups` groups."""
    if isinstance(each.op, WaitGroups) and groups > 1:
        return evolve(each, op=WaitGroups(-(-each.op.pending // groups), each.op.ahead))
    return each


def _previous_read(
    reader: UseResolver, made: list[PlacedOp], event: Event, ring: RingStorage, use: Index | None, *, late: bool
) -> int | None:
    """The index of an earlier read of the same use; None if there is none, or if the use was released since.

    For products, no product of another use and no wait may be between the two, as groups are counted by uses.
    Raises RefusedError where the two have different guards, unless both are products and the earlier is unconditional.
    """
    released: list[int] = []
    for place in range(len(made) - 1, -1, -1):
        op = made[place].op
        if late and isinstance(op, WaitGroups):
            return None
        if isinstance(op, Release) and op.ring == ring.number:
            released.append(op.ahead)
        if not isinstance(op, Read):
            continue
        if op.ring == ring.number:
            same = reader.ahead(use, ring, event.stmt, op.ahead) == op.ahead
            if not same or any(ahead >= op.ahead for ahead in released):
                return None
            unconditional = late and op.late and made[place].guard is algebra.TRUE
            if event.guard is not made[place].guard and not unconditional:
                refuse(event.stmt, "a use that is read again under a condition")
            return place
        if late and op.late:
            return None
    return None


def _placed(reader: UseResolver, event: Event, ahead: dict[int, int]) -> PlacedOp:
    action, stmt, rings = event.action, event.stmt, reader.rings
    match action:
        case WaitEvent(barrier=barrier):
            ring, empty = ring_of_barrier(barrier, rings, stmt)
            at = reader.named(action, ring, -1 if empty else 0)
            ahead[ring.number] = at
            op: Op = WaitEmpty(ring.number, at) if empty else WaitFull(ring.number, at)
            return PlacedOp(op, stmt, barrier, event.guard)
        case ArriveEvent(barrier=barrier, count=count, size=size):
            ring, empty = ring_of_barrier(barrier, rings, stmt)
            at = reader.ahead(action.use, ring, stmt, ahead.get(ring.number, 0))
            if empty:
                if size:
                    refuse(stmt, "bytes announced at the release of a slot")
                return PlacedOp(Release(ring.number, at, count=count), stmt, barrier, event.guard)
            return PlacedOp(ArriveFull(size, ring.number, at, count=count), stmt, barrier, event.guard)
        case FillEvent(barrier=barrier, buffer=buffer):
            ring, _ = ring_of_barrier(barrier, rings, stmt)
            at = reader.ahead(action.use, ring, stmt, ahead.get(ring.number, 0))
            if reader.ahead(action.signal, ring, stmt, at) != at:
                refuse(stmt, "a copy into one slot that completes on the barrier of another")
            part = next(place for place, copy in enumerate(ring.copies) if copy is stmt)
            return PlacedOp(Copy(bytes_of(action.stmt), part, ring.number, at), stmt, buffer, event.guard)
        case MmaWaitEvent(stmt=wait):
            return PlacedOp(WaitGroups(wait.pending), stmt, None, event.guard)
        case OrderEvent() | SyncEvent() | MmaEvent() | ReadEvent():
            refuse(stmt, "a barrier of turns inside the loop over uses")
        case _:
            assert_never(action)
