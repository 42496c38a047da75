"""Events of a role and the order in which its own program makes them, as distances in uses.

Part of the event graph's meaning.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core.protocol.ring import (
    ArriveFull,
    Copy,
    Meet,
    Op,
    Read,
    Release,
    Role,
    WaitEmpty,
    WaitFull,
    WaitGroups,
)


@frozen
class Happening:
    """An event of the role's own program. late: it may come after the role's body of a tile."""

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
        case Meet(waits=waits):
            return ("at", "left") if waits else ("at",)
        case WaitGroups():
            return ()


def event(role: Role, op: Op, kind: str = "at") -> str:
    """The name of an event of one operation."""
    number = next(i for i, each in enumerate(role.body) if each is op)
    word = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in type(op).__name__)
    ring = "" if isinstance(op, WaitGroups | Meet) or not op.ring else f" of ring {op.ring}"
    return f"{role.name}.{number}{word}{ring}" + ("" if kind == "at" else f" {kind}")


def happenings(role: Role) -> list[Happening]:
    """In the order of the body."""
    return [Happening(event(role, op, kind), op.ahead) for op in role.body for kind in _kinds(op)]


def ordered_pairs(role: Role) -> Iterator[tuple[Happening, Happening, int]]:
    """a, b, w: within a tile, a(u) comes before b(u + w), with the least such w. Trip i makes the events of
    use i + ahead, in the order of the body.
    """
    events = happenings(role)
    for i, a in enumerate(events):
        for j, b in enumerate(events):
            yield a, b, b.ahead - a.ahead + (0 if i < j else 1)


@frozen
class _Trace:
    """When each read is known to be over, and when each operation is made, by place and use, in one tile."""

    trips: int
    over: dict[int, int]
    made: dict[tuple[int, int], int]


def lags_of_cover(role: Role, read: Read) -> Iterator[tuple[Op, int]]:
    """Operations, and the least w >= 0 such that read(u) is known to be over when the operation of u + w begins.

    Decided by running tiles of every length up to one where prologue, body and epilogue have all shown. The longest
    must make the operation of use w before its end, where every read is over anyway.
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
