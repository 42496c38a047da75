"""Lowers a protocol at one size to straight-line programs over numbered barriers and cells."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core.protocol.outcome import Size
from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    Cursor,
    NamedBarrierOp,
    Op,
    Phase,
    Protocol,
    Read,
    Release,
    Ring,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
)

Tag = tuple[int, int]
"""Identifies data: tile, and use within it."""
Cell = tuple[int, int, int]
"""Ring, slot, part."""


@frozen
class Await:
    barrier: int
    phase: int


@frozen
class ArriveBarrier:
    """`count` arrivals, after an expect-tx of `size` bytes."""

    barrier: int
    count: int
    size: int


@frozen
class StartCopy:
    """Start an asynchronous copy; it writes the cell until it completes on the barrier."""

    cell: Cell
    tag: Tag
    barrier: int
    size: int


@frozen
class ReadCells:
    """Read cells that must hold the data `tag`. late: by a wgmma group, which completes later."""

    cells: tuple[Cell, ...]
    tag: Tag
    late: bool


@frozen
class DrainGroups:
    pending: int


@frozen
class ArriveNamed:
    """Arrival at a named barrier."""

    meeting: int


@frozen
class AwaitNamed:
    """Wait until the generation of the named barrier in which this role arrived is complete."""

    meeting: int


Step = Await | ArriveBarrier | StartCopy | ReadCells | DrainGroups | ArriveNamed | AwaitNamed


@frozen
class Program:
    """counts: arrivals per phase, by barrier. names: of the barriers. steps: (trip, step) per role."""

    counts: tuple[int, ...]
    names: tuple[str, ...]
    meetings: tuple[int, ...]
    roles: tuple[str, ...]
    steps: tuple[tuple[tuple[int, Step], ...], ...]


class _Barriers:
    """Assigns numbers to barriers: full and empty of each ring, then those that order agents."""

    def __init__(self, protocol: Protocol) -> None:
        self.counts: list[int] = []
        self.names: list[str] = []
        self._full: list[int] = []
        self._empty: list[int] = []
        many = len(protocol.rings) > 1
        for number, ring in enumerate(protocol.rings):
            suffix = f" of ring {number}" if many else ""
            self._full.append(self._add(f"full{suffix}", ring.stages, ring.full))
            self._empty.append(self._add(f"empty{suffix}", ring.stages, ring.empty))
        self._turn = self._add("turn", max((role.share[1] for role in protocol.roles if role.turn), default=0), 1)

    def _add(self, name: str, number: int, count: int) -> int:
        first = len(self.counts)
        self.counts.extend([count] * number)
        self.names.extend(f"{name}[{i}]" for i in range(number))
        return first

    def full(self, ring: int, slot: int) -> int:
        return self._full[ring] + slot

    def empty(self, ring: int, slot: int) -> int:
        return self._empty[ring] + slot

    def turn(self, agent: int) -> int:
        return self._turn + agent


class _Writer:
    """Lowers one role."""

    def __init__(self, protocol: Protocol, role: Role, barriers: _Barriers) -> None:
        self.protocol = protocol
        self.role = role
        self.barriers = barriers
        self.base = [0] * len(protocol.rings)
        self.trip = 0

    def steps(self, size: Size) -> Iterator[tuple[int, Step]]:
        role = self.role
        for meeting in role.seeds:
            yield self.trip, ArriveNamed(meeting)
        trips = max(0, size.trips + role.trips)
        agent, agents = role.share
        for tile in range(size.tiles):
            if tile % agents == agent:
                yield from self._tile(tile, trips)
            if tile % agents == agent or role.skips:
                self.base = [
                    base + self._uses(ring, trips) for base, ring in zip(self.base, self.protocol.rings, strict=True)
                ]
            self.trip += 1
        if role.finishes:
            yield from self._finish()

    @staticmethod
    def _uses(ring: Ring, trips: int) -> int:
        return 1 if ring.per_tile else max(0, trips - ring.fewer)

    def _is_executed(self, op: Op, use: int, trips: int) -> bool:
        """Whether the operation on this use of a tile is executed."""
        most = trips if isinstance(op, WaitGroups | NamedBarrierOp) else self._uses(self.protocol.rings[op.ring], trips)
        return 0 <= use < most

    def _tile(self, tile: int, trips: int) -> Iterator[tuple[int, Step]]:
        role = self.role
        agent, agents = role.share
        if role.turn:
            entry = tile // agents
            yield self.trip, Await(self.barriers.turn(agent), entry - 1 if agent == 0 else entry)
        yield from self._once(tile, role.before)
        ahead = [0, *(op.ahead for op in role.body)]
        for trip in range(-max(ahead), trips - min(ahead) + 1):
            if trip == trips:
                if role.turn:
                    yield self.trip, ArriveBarrier(self.barriers.turn((agent + 1) % agents), 1, 0)
                yield self.trip, DrainGroups(0)
            self.trip += 1
            for op in role.body:
                if self._is_executed(op, trip + op.ahead, trips):
                    for step in self._op(op, (tile, trip + op.ahead)):
                        yield self.trip, step
        yield from self._once(tile, role.after)

    def _once(self, tile: int, ops: tuple[Op, ...]) -> Iterator[tuple[int, Step]]:
        """Operations executed once per tile, on use 0 of each ring."""
        self.trip += 1
        for op in ops:
            for step in self._op(op, (tile, 0)):
                yield self.trip, step

    def _finish(self) -> Iterator[tuple[int, Step]]:
        for op in (*self.role.body, *self.role.tile_ops):
            if isinstance(op, WaitEmpty):
                for last in range(self.protocol.rings[op.ring].stages):
                    for step in self._op(op, (0, last)):
                        yield self.trip, step

    def _value(self, ring: int, cursor: Cursor, use: int) -> int:
        return use + cursor.offset + (0 if cursor.restarts else self.base[ring])

    def _op(self, op: Op, tag: Tag) -> Iterator[Step]:
        use = tag[1]
        match op:
            case WaitEmpty(ring=ring):
                yield Await(self.barriers.empty(ring, self._slot(ring, op.slot, use)), self._phase(ring, op.phase, use))
            case WaitFull(ring=ring):
                yield Await(self.barriers.full(ring, self._slot(ring, op.slot, use)), self._phase(ring, op.phase, use))
            case ArriveFull(ring=ring):
                yield ArriveBarrier(self.barriers.full(ring, self._slot(ring, op.slot, use)), op.count, op.size)
            case Release(ring=ring):
                yield ArriveBarrier(self.barriers.empty(ring, self._slot(ring, op.slot, use)), op.count, 0)
            case Copy(ring=ring):
                signal = self.barriers.full(ring, self._slot(ring, op.signal, use))
                yield StartCopy((ring, self._slot(ring, op.slot, use), op.part), tag, signal, op.size)
            case Read(ring=ring):
                slot = self._slot(ring, op.slot, use)
                parts = range(len(self.protocol.rings[ring].parts))
                yield ReadCells(tuple((ring, slot, part) for part in parts), tag, op.late)
            case WaitGroups(pending=pending):
                yield DrainGroups(pending)
            case NamedBarrierOp(barrier=barrier, waits=waits):
                yield ArriveNamed(barrier)
                if waits:
                    yield AwaitNamed(barrier)

    def _slot(self, ring: int, cursor: Cursor, use: int) -> int:
        return self._value(ring, cursor, use) % self.protocol.rings[ring].stages

    def _phase(self, ring: int, phase: Phase, use: int) -> int:
        return self._value(ring, phase.cursor, use) // self.protocol.rings[ring].stages + phase.plus


def program(protocol: Protocol, size: Size) -> Program:
    """The steps of each role at the given size."""
    barriers = _Barriers(protocol)
    steps = tuple(tuple(_Writer(protocol, role, barriers).steps(size)) for role in protocol.roles)
    names = tuple(role.name for role in protocol.roles)
    return Program(tuple(barriers.counts), tuple(barriers.names), protocol.named_barriers, names, steps)
