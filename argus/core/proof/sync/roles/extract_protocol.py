"""A kernel's roles read as a ring protocol: nothing is believed of where a statement came from.

Each operation on a ring stands in the loop over uses at a fixed distance `ahead` of the trip; what stands before and
after the loop must be just the trips that the loop lacks. Whatever does not fit is refused, with its line.
Source: proof-methods 3.2, 3.3 (scope).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Await, Buffer, Kernel, Stmt
from argus.core.proof.sync.roles.clusters import of_cluster
from argus.core.proof.sync.roles.context import Ledger, refuse
from argus.core.proof.sync.roles.events import Arrived, Drained, Event, Filled, Looked, Met, Multiplied, Turned, Waited
from argus.core.proof.sync.roles.in_flight_mma import settled
from argus.core.proof.sync.roles.in_loop_order import chained, with_turns
from argus.core.proof.sync.roles.parsed import Parsed, Run, Storage, arrivals, bytes_of
from argus.core.proof.sync.roles.prologue_epilogue import Placed, finishes, judge_trips
from argus.core.proof.sync.roles.tile_rings import Once, held
from argus.core.proof.sync.roles.uses import Reader, of_barrier, reads_of
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


@frozen(eq=False)
class Spoken:
    """A protocol, with the statements that its roles' operations are. placed: by role, as in the protocol. uses: of a
    tile, by the wait for it.
    """

    protocol: Protocol
    placed: tuple[tuple[Placed, ...], ...]
    uses: Mapping[Stmt, Index]

    def stmt_of(self, *kinds: type[Op]) -> Stmt:
        """The first statement that is an operation of such a kind, or else of any."""
        every = [each for role in self.placed for each in role]
        return next((each.stmt for each in every if isinstance(each.op, kinds)), every[0].stmt)


def spoken(
    kernel: Kernel, roles: Sequence[Parsed], rings: Sequence[Storage], turned: frozenset[Parsed], ledger: Ledger
) -> Spoken:
    """The protocol of all roles. turned: roles whose agents are known to take turns. Raises RefusedError."""
    made: list[Role] = []
    placed: list[tuple[Placed, ...]] = []
    uses: dict[Stmt, Index] = {}
    chains = tuple(chain for role in roles if (chain := chained(kernel, role, len(rings), ledger)) is not None)
    for role in roles:
        if role.fills and len(role.runs) > 1:
            refuse(role.runs[1].loop, f"role `{role.role.name}` fills rings in several loops")
        chain = next((each for each in chains if each.role is role), None)
        waits: list[tuple[Stmt, Index]] = []
        ops = _ops(role, rings, ledger, waits)
        waits.extend(judge_trips(role, ops, rings, ledger))
        once = held(role, rings, ledger)
        waits.extend((each.stmt, algebra.const(0)) for each in once.before)
        for stmt, use in waits:
            if isinstance(stmt, Await):
                if stmt in uses:
                    refuse(stmt, "one statement that waits in two places")
                uses[stmt] = use
        for agent in range(role.role.agents):
            own = ops if chain is None else with_turns(role, ops, chain, agent)
            made.append(_role(role, agent, own, rings, once, turn=role in turned, ledger=ledger))
            placed.append((*once.before, *own, *once.after))
    least = 1 if ledger.holds(roles[0].facts, algebra.le(1, roles[0].uses)) else 0
    persistent = roles[0].laps.tiles is not None
    sizes = (*(_ring(kernel, ring) for ring in rings), *(chain.ring for chain in chains))
    if kernel.peers > 1:
        if chains:
            refuse(chains[0].role.loop, "turns taken in a loop over uses, in a cluster")
        sizes, made, placed = of_cluster(kernel, rings, sizes, made, placed)
    return Spoken(Protocol(sizes, tuple(made), least=least, persistent=persistent), tuple(placed), uses)


def _ring(kernel: Kernel, ring: Storage) -> Ring:
    parts = tuple(bytes_of(copy) for copy in ring.copies)
    return Ring(ring.stages, parts, arrivals(kernel, ring.full), arrivals(kernel, ring.empty), once=ring.once)


def _role(
    role: Parsed,
    agent: int,
    ops: tuple[Placed, ...],
    rings: Sequence[Storage],
    once: Once,
    *,
    turn: bool,
    ledger: Ledger,
) -> Role:
    before, body, after = (tuple(each.op for each in part) for part in (once.before, ops, once.after))
    share, ends = _share(role, agent), finishes(role, ops, rings, ledger)
    return Role(name_of(role, agent), body, share=share, turn=turn, finishes=ends, before=before, after=after)


def name_of(role: Parsed, agent: int) -> str:
    """How the protocol calls an agent."""
    own = role.role
    return f"role {own.name}" if own.agents == 1 else f"role {own.name}[{agent}]"


def _share(role: Parsed, agent: int) -> tuple[int, int]:
    """Which tiles an agent takes: all, or each n-th from its number on."""
    tiles, own = role.laps.tiles, role.role
    if tiles is None or (tiles.start is algebra.const(0) and tiles.step == 1):
        return 0, 1
    if tiles.start is algebra.sym(own.number) and tiles.step == own.agents:
        return agent, own.agents
    refuse(tiles, f"the agents of `{own.name}` take neither all tiles nor each its share of them")


# -- operations of the loop ----------------------------------------------------------------------------------


def _ops(role: Parsed, rings: Sequence[Storage], ledger: Ledger, waits: list[tuple[Stmt, Index]]) -> tuple[Placed, ...]:
    """What each of the role's loops does alike; `waits` gets the use of each. Raises RefusedError where they differ."""
    first, *others = (_ops_of(role, run, rings, ledger) for run in role.runs)
    for run, ops in zip(role.runs, (first, *others), strict=True):
        waits.extend((each.stmt, algebra.add(run.trip, each.op.ahead)) for each in ops)
    for run, ops in zip(role.runs[1:], others, strict=True):
        if [(each.op, each.on) for each in ops] != [(each.op, each.on) for each in first]:
            refuse(run.loop, "loops over uses of one tile that do not work on rings alike")
    _judge_looks(role, rings)
    return tuple(evolve(each, guards=guards) for each, guards in zip(first, _guards(first, others), strict=True))


def _guards(first: tuple[Placed, ...], others: list[tuple[Placed, ...]]) -> Iterator[tuple[Cond, ...]]:
    for place, each in enumerate(first):
        yield (each.guard, *(ops[place].guard for ops in others))


def _ops_of(role: Parsed, run: Run, rings: Sequence[Storage], ledger: Ledger) -> tuple[Placed, ...]:
    made: list[Placed] = []
    ahead: dict[int, int] = {}
    reader = Reader(role, run, tuple(rings), ledger)
    queued = not settled(role, rings)
    for event in run.events:
        happening = event.happening
        if isinstance(happening, Met | Turned) or (isinstance(happening, Drained) and not queued):
            continue
        if isinstance(happening, Multiplied | Looked):
            _read(reader, made, event, ahead, late=queued and isinstance(happening, Multiplied))
            continue
        if not isinstance(happening, Drained) and _of_once(happening, rings):
            refuse(event.stmt, "a ring of which a tile is one use, worked on in the loop over uses")
        made.append(_placed(reader, event, ahead))
    counts = {each.groups for each in made if isinstance(each.op, Read) and each.op.late}
    if len(counts) > 1:
        refuse(made[0].stmt, "uses that are read by different numbers of products")
    groups = next(iter(counts), 1)
    return tuple(_by_use(each, groups) for each in made)


def _of_once(happening: Waited | Arrived | Filled, rings: Sequence[Storage]) -> bool:
    return any(ring.once and happening.barrier in (ring.full, ring.empty) for ring in rings)


def _read(reader: Reader, made: list[Placed], event: Event, ahead: dict[int, int], *, late: bool) -> None:
    """Adds a read of each ring that the product or load reads, or counts it to one already there of the same use."""
    for ring, use in reads_of(event, reader.rings):
        if ring.once:
            continue
        last = _same_use(reader, made, event, ring, use, late=late)
        if last is not None:
            found = made[last]
            made[last] = evolve(found, op=_later(found.op, late=late), groups=found.groups + late)
            continue
        at = reader.ahead(use, ring, event.stmt, ahead.get(ring.number, 0))
        made.append(Placed(Read(ring.number, at, late=late), event.stmt, None, event.guard, groups=int(late)))


def _later(op: Op, *, late: bool) -> Op:
    return evolve(op, late=op.late or late) if isinstance(op, Read) else op


def _judge_looks(role: Parsed, rings: Sequence[Storage]) -> None:
    """Trap T4: one thread's arrival releases its own ordinary reads; those of the others need a meeting before it.

    Along every way through the tile: each of its loops may run any number of times.
    """
    if role.role.agent == 1:
        return
    loose = _judge_path(role.ahead, frozenset(), rings)
    for run in role.runs:
        loose = _judge_loop(run.events, loose, rings)
    _judge_path(role.behind, loose, rings)


def _judge_loop(events: Sequence[Event], entry: frozenset[Buffer], rings: Sequence[Storage]) -> frozenset[Buffer]:
    """What may not have been met after since it was read, where the loop ends."""
    loose = entry
    while (following := loose | _judge_path(events, loose, rings)) != loose:
        loose = following
    return loose


def _judge_path(path: Sequence[Event], entry: frozenset[Buffer], rings: Sequence[Storage]) -> frozenset[Buffer]:
    loose = set(entry)
    for event in path:
        match event.happening:
            case Looked(buffer=buffer):
                loose.add(buffer)
            case Met() if event.guard is algebra.TRUE:
                loose.clear()
            case Arrived(barrier=barrier):
                ring = next((each for each in rings if each.empty is barrier), None)
                if ring is not None and loose & ring.buffers:
                    refuse(event.stmt, "a slot is given back by one thread while others may still read it: trap T4")
            case _:
                pass
    return frozenset(loose)


def _by_use(each: Placed, groups: int) -> Placed:
    """Groups left, as uses that may still be read: each use is read by so many groups."""
    if isinstance(each.op, WaitGroups) and groups > 1:
        return evolve(each, op=WaitGroups(-(-each.op.pending // groups), each.op.ahead))
    return each


def _same_use(
    reader: Reader, made: list[Placed], event: Event, ring: Storage, use: Index | None, *, late: bool
) -> int | None:
    """The read already listed of the very use that is read here; None if there is none, or if the use has been given
    back since. Of products, none of another use and no wait may lie between: groups are counted by uses.

    Raises RefusedError where the two are made under different conditions.
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
            if event.guard is not made[place].guard:
                refuse(event.stmt, "a use that is read once more under a condition")
            return place
        if late and op.late:
            return None
    return None


def _placed(reader: Reader, event: Event, ahead: dict[int, int]) -> Placed:
    happening, stmt, rings = event.happening, event.stmt, reader.rings
    match happening:
        case Waited(barrier=barrier):
            ring, empty = of_barrier(barrier, rings, stmt)
            at = reader.named(happening, ring, -1 if empty else 0)
            ahead[ring.number] = at
            op: Op = WaitEmpty(ring.number, at) if empty else WaitFull(ring.number, at)
            return Placed(op, stmt, barrier, event.guard)
        case Arrived(barrier=barrier, count=count, size=size):
            ring, empty = of_barrier(barrier, rings, stmt)
            at = reader.ahead(happening.use, ring, stmt, ahead.get(ring.number, 0))
            if empty:
                if size:
                    refuse(stmt, "bytes announced where slots are given back")
                return Placed(Release(ring.number, at, count=count), stmt, barrier, event.guard)
            return Placed(ArriveFull(size, ring.number, at, count=count), stmt, barrier, event.guard)
        case Filled(barrier=barrier, buffer=buffer):
            ring, _ = of_barrier(barrier, rings, stmt)
            at = reader.ahead(happening.use, ring, stmt, ahead.get(ring.number, 0))
            if reader.ahead(happening.signal, ring, stmt, at) != at:
                refuse(stmt, "a copy into one slot that lands on the barrier of another")
            part = next(place for place, copy in enumerate(ring.copies) if copy is stmt)
            return Placed(Copy(bytes_of(happening.stmt), part, ring.number, at), stmt, buffer, event.guard)
        case Drained(stmt=wait):
            return Placed(WaitGroups(wait.pending), stmt, None, event.guard)
        case Turned() | Met() | Multiplied() | Looked():
            refuse(stmt, "a barrier of turns inside the loop over uses")
        case _:
            assert_never(happening)
