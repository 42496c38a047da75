"""Asynchronous operations: each reads and writes when the adversary decides, in order only within its queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from attrs import define, field

from argus.core.ir import Buffer, Copy, Mma
from argus.interp.violation import Event

Kind = Literal["wgmma", "bulk", "cp_async", "tma"]


@define(eq=False)
class AsyncOp:
    """An asynchronous operation. moments: its remaining effects, the first of which reads its sources.

    number: its number in the cluster. lane: operations of one lane take effect in order; kind: of its queue.
    registers: fragments that it reads or writes after issue.
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
        """The bit of a clock that says that it has read its sources."""
        return 2 * self.number

    @property
    def complete(self) -> int:
        """The bit of a clock that says that it is complete."""
        return 2 * self.number + 1

    @property
    def done(self) -> bool:
        """Whether all its effects have happened."""
        return not self.moments

    def advance(self) -> None:
        """Perform its next effect."""
        self.moments.popleft()()
        self.has_read = True


@define(eq=False)
class Engine:
    """Executes asynchronous operations. lanes: the incomplete operations, oldest first in each lane."""

    lanes: dict[tuple[object, ...], deque[AsyncOp]] = field(factory=dict[tuple[object, ...], deque[AsyncOp]])
    issued: int = 0

    def number(self) -> int:
        """A fresh operation number."""
        self.issued += 1
        return self.issued - 1

    def issue(self, op: AsyncOp) -> None:
        """Append an operation to its lane."""
        self.lanes.setdefault(op.lane, deque()).append(op)

    def heads(self) -> list[AsyncOp]:
        """Operations that can make progress: the oldest of each lane; TMA copies first, then by age."""
        return sorted((lane[0] for lane in self.lanes.values()), key=lambda f: (f.kind != "tma", f.number))

    def advance(self, op: AsyncOp) -> None:
        """Perform the next effect of an operation that is the oldest of its lane."""
        op.advance()
        if op.done:
            lane = self.lanes[op.lane]
            lane.popleft()
            if not lane:
                del self.lanes[op.lane]

    def complete(self, op: AsyncOp, *, reads: bool = False) -> None:
        """Complete an operation and the ones before it in its lane; with `reads`, only until it has read."""
        lane = self.lanes.get(op.lane)
        while lane and not (op.done or (reads and op.has_read)):
            self.advance(lane[0])

    def drain(self) -> None:
        """Complete all operations."""
        while self.lanes:
            self.advance(self.heads()[0])


@define(eq=False)
class Groups:
    """The pending groups of one owner on a queue. closed: committed groups, oldest first; open: uncommitted ops."""

    closed: deque[list[AsyncOp]] = field(factory=deque[list[AsyncOp]])
    open: list[AsyncOp] = field(factory=list[AsyncOp])

    def add(self, op: AsyncOp, *, alone: bool) -> None:
        """Add an operation to the open group; if `alone`, as a committed group of its own."""
        if alone:
            self.closed.append([op])
        else:
            self.open.append(op)

    def commit(self) -> None:
        """Close the open group."""
        self.closed.append(self.open)
        self.open = []

    def cover(self, pending: int, *, reads: bool) -> list[AsyncOp]:
        """The operations covered by a wait for all but the youngest `pending` groups, which it removes.

        A wait for reads only does not remove them.
        """
        count = max(0, len(self.closed) - pending)
        covered = [op for group in list(self.closed)[:count] for op in group]
        for _ in range(0 if reads else count):
            self.closed.popleft()
        return covered

    def __iter__(self) -> Iterator[AsyncOp]:
        for group in self.closed:
            yield from group
        yield from self.open


def bits(ops: Iterable[AsyncOp], *, reads: bool) -> int:
    """The clock bits that a wait covering these operations acquires."""
    known = 0
    for op in ops:
        known |= 1 << op.read
        if not reads:
            known |= 1 << op.complete
    return known
