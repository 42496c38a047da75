"""Operations under way: each takes its moments when the adversary says so, in order within its queue only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from attrs import define, field

from argus.core.ir import Buffer, Copy, Mma
from argus.interp.violation import Event

Kind = Literal["wgmma", "bulk", "cp_async", "tma"]


@define(eq=False)
class Flight:
    """An asynchronous operation: its moments, the first of which reads its sources.

    number: of the block's operations. lane: what keeps it in order of others; kind: of its queue. registers: what it
    reads or writes late. writes: to shared memory.
    """

    number: int
    kind: Kind
    lane: tuple[object, ...]
    event: Event
    stmt: Copy | Mma
    moments: deque[Callable[[], None]]
    registers: tuple[Buffer, ...] = ()
    has_read: bool = False

    @property
    def read(self) -> int:
        """The bit of its number that says that it has read its sources."""
        return 2 * self.number

    @property
    def complete(self) -> int:
        """The bit that says that all of it is done."""
        return 2 * self.number + 1

    @property
    def done(self) -> bool:
        return not self.moments

    def advance(self) -> None:
        self.moments.popleft()()
        self.has_read = True


@define(eq=False)
class Engine:
    """What executes asynchronous operations: all that are not complete, oldest first in each lane."""

    lanes: dict[tuple[object, ...], deque[Flight]] = field(factory=dict[tuple[object, ...], deque[Flight]])
    issued: int = 0

    def number(self) -> int:
        self.issued += 1
        return self.issued - 1

    def issue(self, flight: Flight) -> None:
        self.lanes.setdefault(flight.lane, deque()).append(flight)

    def heads(self) -> list[Flight]:
        """Those that can take their next moment: the oldest of each lane, oldest first, copies before products."""
        return sorted((lane[0] for lane in self.lanes.values()), key=lambda f: (f.kind != "tma", f.number))

    def advance(self, flight: Flight) -> None:
        """The oldest of a lane takes its next moment."""
        flight.advance()
        if flight.done:
            lane = self.lanes[flight.lane]
            lane.popleft()
            if not lane:
                del self.lanes[flight.lane]

    def complete(self, flight: Flight, *, reads: bool = False) -> None:
        """An operation, and those before it in its lane, complete, or at least read."""
        lane = self.lanes.get(flight.lane)
        while lane and not (flight.done or (reads and flight.has_read)):
            self.advance(lane[0])

    def drain(self) -> None:
        while self.lanes:
            self.advance(self.heads()[0])


@define(eq=False)
class Groups:
    """One owner's groups on a queue that no wait has covered yet, oldest first, and what is not committed."""

    closed: deque[list[Flight]] = field(factory=deque[list[Flight]])
    open: list[Flight] = field(factory=list[Flight])

    def add(self, flight: Flight, *, alone: bool) -> None:
        if alone:
            self.closed.append([flight])
        else:
            self.open.append(flight)

    def commit(self) -> None:
        self.closed.append(self.open)
        self.open = []

    def cover(self, pending: int, *, reads: bool) -> list[Flight]:
        """What a wait for all groups but the youngest `pending` covers. A wait for reads alone keeps them."""
        count = max(0, len(self.closed) - pending)
        covered = [flight for group in list(self.closed)[:count] for flight in group]
        for _ in range(0 if reads else count):
            self.closed.popleft()
        return covered

    def __iter__(self) -> Iterator[Flight]:
        for group in self.closed:
            yield from group
        yield from self.open


def bits(flights: Iterable[Flight], *, reads: bool) -> int:
    """What a wait that covers these tells."""
    known = 0
    for flight in flights:
        known |= 1 << flight.read
        if not reads:
            known |= 1 << flight.complete
    return known
