"""Waves of a block: program counters, and completion queues of asynchronous copies that read, then write."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from attrs import define, field

from argus.core.index import Symbol
from argus.core.ir import Buffer, Copy, For, If, Stmt
from argus.interp.memory.cells import AnyArray, IntArray
from argus.interp.memory.views import Place
from argus.interp.violation import Event, Path

NEVER = 1 << 60
"""The epoch of an operation that no wait covers."""


@define(eq=False)
class Frame:
    """A statement list that is being executed. values: of the loop variable; trip: the number of the current one.

    restore: the end of the wave's threads before a body of one thread; 0 for other bodies.
    """

    body: tuple[Stmt, ...]
    path: Path
    loop: For | None = None
    values: range = range(0)
    trip: int = 0
    index: int = 0
    restore: int = 0


@define(eq=False)
class SharedAccess:
    """One statement's reads or writes of a shared buffer, by one wave.

    drained: the wave's epoch when a wait covered it, NEVER until then. over: the program position of that wait.
    cells: a bit set. direct: the access is by a load from global memory to LDS.
    """

    event: Event
    buffer: Buffer
    writes: bool
    cells: int
    place: Place
    drained: int = NEVER
    over: tuple[int, ...] | None = None
    direct: bool = False


@define(eq=False)
class Operation:
    """An asynchronous copy: it reads its source, then writes its target, each at some time after issue."""

    event: Event
    stmt: Copy
    read: Callable[[], tuple[AnyArray | None, IntArray | None]]
    write: Callable[[tuple[AnyArray | None, IntArray | None]], None]
    accesses: tuple[SharedAccess, ...]
    staged: tuple[AnyArray | None, IntArray | None] | None = None
    done: bool = False

    def advance(self) -> None:
        """Perform its next effect: the read, then the write."""
        if self.staged is None:
            self.staged = self.read()
        else:
            self.write(self.staged)
            self.done, self.staged = True, None

    def complete(self) -> None:
        """Perform its remaining effects."""
        while not self.done:
            self.advance()


@define(eq=False)
class Completions:
    """One wave's completion queue.

    operations: those that no wait has covered, oldest first; running: those that are not complete, oldest first.
    """

    name: str
    operations: deque[Operation] = field(factory=deque[Operation])
    running: deque[Operation] = field(factory=deque[Operation])

    def issue(self, operation: Operation) -> None:
        """Append an operation."""
        self.operations.append(operation)
        self.running.append(operation)

    def advance(self) -> None:
        """Perform the next effect of the oldest incomplete operation."""
        self.running[0].advance()
        if self.running[0].done:
            self.running.popleft()

    def complete(self, until: Operation | None = None) -> None:
        """Complete all operations in order, or all up to one."""
        while self.running and (until is None or not until.done):
            self.running.popleft().complete()

    def cover(self, pending: int) -> list[Operation]:
        """Complete all operations but the youngest `pending`, and return the ones that were covered."""
        covered: list[Operation] = []
        while len(self.operations) > pending:
            operation = self.operations.popleft()
            self.complete(operation)
            covered.append(operation)
        return covered


@define(eq=False)
class Wave:
    """One wave: the values of its symbols, its position in the program, and its pending operations."""

    number: int
    first: int
    last: int
    env: dict[Symbol, int]
    frames: list[Frame]
    loops: list[Symbol] = field(factory=list[Symbol])
    arrivals: int = 0
    blocked: bool = False
    finished: bool = False
    at: Stmt | None = None
    barrier: Event | None = None
    queues: dict[str, Completions] = field(factory=dict[str, Completions])
    pending_loads: dict[Buffer, list[Operation]] = field(factory=dict[Buffer, list[Operation]])

    def queue(self, name: str) -> Completions:
        """The completion queue of this name, created on first use."""
        found = self.queues.get(name)
        if found is None:
            found = self.queues[name] = Completions(name)
        return found

    def event(self, stmt: Stmt, block: tuple[int, ...]) -> Event:
        """The event of this execution of a statement."""
        frame = self.frames[-1]
        iteration = tuple((symbol.name, self.env[symbol]) for symbol in self.loops)
        return Event(stmt, block, self.number, (*frame.path, frame.index - 1), iteration, self.arrivals)

    def enter_loop(self, loop: For, values: range) -> None:
        """Begin a loop over these values; skip it if there are none."""
        if not values:
            return
        frame = self.frames[-1]
        self.loops.append(loop.symbol)
        self.env[loop.symbol] = values[0]
        self.frames.append(Frame(loop.body, (*frame.path, frame.index - 1, 0), loop, values))

    def enter_branch(self, stmt: If, *, holds: bool) -> None:
        """Begin a branch of an `If`."""
        frame = self.frames[-1]
        body = stmt.then if holds else stmt.otherwise
        self.frames.append(Frame(body, (*frame.path, frame.index - 1, 0 if holds else 1)))

    def next(self) -> Stmt | None:
        """The next statement of the program; None at its end."""
        while self.frames:
            frame = self.frames[-1]
            if frame.index < len(frame.body):
                frame.index += 1
                return frame.body[frame.index - 1]
            if frame.loop is not None and frame.trip + 1 < len(frame.values):
                frame.trip += 1
                frame.index = 0
                frame.path = (*frame.path[:-1], frame.trip)
                self.env[frame.loop.symbol] = frame.values[frame.trip]
                continue
            self.frames.pop()
            self.last = frame.restore or self.last
            if frame.loop is not None:
                del self.env[self.loops.pop()]
        return None
