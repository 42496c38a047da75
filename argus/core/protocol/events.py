"""The events of a role and their program order, as distances in uses.

Part of the event-graph semantics.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    NamedBarrierOp,
    Op,
    Read,
    Release,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
)


@frozen
class RoleEvent:
    """An event of a role's program. late: it may be in the epilogue of a tile."""

    event: str
    ahead: int

    @property
    def late(self) -> bool:
        return self.ahead < 0


def _kinds(op: Op) -> tuple[str, ...]:
    match op:
        case WaitEmpty() | WaitFull():
            return "begin", "end"
        case ArriveFull() | Copy() | Read() | Release():
            return ("at",)
        case NamedBarrierOp(waits=waits):
            return ("at", "left") if waits else ("at",)
        case WaitGroups():
            return ()


def event_name(role: Role, op: Op, kind: str = "at") -> str:
    """The name of an event of an operation."""
    number = next(i for i, each in enumerate(role.body) if each is op)
    word = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in type(op).__name__)
    ring = "" if isinstance(op, WaitGroups | NamedBarrierOp) or not op.ring else f" of ring {op.ring}"
    return f"{role.name}.{number}{word}{ring}" + ("" if kind == "at" else f" {kind}")


def role_events(role: Role) -> list[RoleEvent]:
    """The events of a role in the order of its body."""
    return [RoleEvent(event_name(role, op, kind), op.ahead) for op in role.body for kind in _kinds(op)]


def ordered_pairs(role: Role) -> Iterator[tuple[RoleEvent, RoleEvent, int]]:
    """Triples a, b, w with the least w such that a(u) precedes b(u + w) within a tile.

    Trip i executes the events of use i + ahead, in the order of the body.
    """
    events = role_events(role)
    for i, a in enumerate(events):
        for j, b in enumerate(events):
            yield a, b, b.ahead - a.ahead + (0 if i < j else 1)


@frozen
class _Trace:
    """The execution of one tile: when each read certainly ends, and when each (operation, use) executes."""

    trips: int
    over: dict[int, int]
    made: dict[tuple[int, int], int]


def read_cover_lags(role: Role, read: Read) -> Iterator[tuple[Op, int]]:
    """Operations with the least w >= 0 such that read(u) has certainly ended when the operation of u + w begins.

    Decided by executing tiles of every length up to one with a full prologue, body and epilogue. The longest must
    execute the operation of use w before the tile's end, where every read has ended anyway.
    """
    ahead = [0, *(op.ahead for op in role.body)]
    spread = max(ahead) - min(ahead)
    pending = max((op.pending for op in role.body if isinstance(op, WaitGroups)), default=0)
    longest = 2 * spread + pending + 4
    traces = [_trace(role, read, trips) for trips in range(1, longest + 1)]
    for place, op in enumerate(role.body):
        lags = range(longest - spread)
        lag = next((lag for lag in lags if all(_covers(trace, place, lag) for trace in traces)), None)
        if lag is not None and not isinstance(op, WaitGroups):
            yield op, lag


def _covers(trace: _Trace, place: int, lag: int) -> bool:
    for use in range(trace.trips - lag):
        if trace.over.get(use, trace.made[place, use + lag]) >= trace.made[place, use + lag]:
            return False
    return True


def _trace(role: Role, read: Read, trips: int) -> _Trace:
    trace = _Trace(trips, {}, {})
    groups: list[int | None] = []
    clock = 0
    ahead = [0, *(op.ahead for op in role.body)]
    for trip in range(-max(ahead), trips - min(ahead) + 1):
        if trip == trips:
            clock += 1
            trace.over.update((use, clock) for use in groups if use is not None)
            groups.clear()
        for place, op in enumerate(role.body):
            use = trip + op.ahead
            if not 0 <= use < trips:
                continue
            clock += 1
            trace.made[place, use] = clock
            match op:
                case Read(late=True):
                    groups.append(use if op is read else None)
                case Read() if op is read:
                    trace.over[use] = clock
                case WaitGroups(pending=pending):
                    done = max(0, len(groups) - pending)
                    trace.over.update((each, clock) for each in groups[:done] if each is not None)
                    del groups[:done]
                case _:
                    pass
    return trace
