"""One block as a machine: waves with a place in the program, queues of operations with two moments each."""

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
"""The epoch of what no wait ever covers."""


@define(eq=False)
class Frame:
    """A statement list that is being run; `turns` are the loop's remaining values, ascending in execution.

    restore: where the wave ended before a body of one thread; 0 if it is none.
    """

    body: tuple[Stmt, ...]
    path: Path
    loop: For | None = None
    turns: range = range(0)
    turn: int = 0
    index: int = 0
    restore: int = 0


@define(eq=False)
class SharedAccess:
    """One statement's reads or writes of a shared buffer, by one wave.

    drained: the wave's epoch when a wait covered it, NEVER until then. over: where in its wave's program that wait
    stands. cells: the bits of a number. direct: by a load that goes to shared memory on the way of global loads.
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
    """An asynchronous copy: it reads its source, then writes its target, each at some moment."""

    event: Event
    stmt: Copy
    read: Callable[[], tuple[AnyArray | None, IntArray | None]]
    write: Callable[[tuple[AnyArray | None, IntArray | None]], None]
    accesses: tuple[SharedAccess, ...]
    staged: tuple[AnyArray | None, IntArray | None] | None = None
    done: bool = False

    def advance(self) -> None:
        """The next of its two moments."""
        if self.staged is None:
            self.staged = self.read()
        else:
            self.write(self.staged)
            self.done, self.staged = True, None

    def complete(self) -> None:
        while not self.done:
            self.advance()


@define(eq=False)
class Completions:
    """One wave's queue: operations that no wait has covered, oldest first, and the first not yet complete."""

    name: str
    operations: deque[Operation] = field(factory=deque[Operation])
    running: deque[Operation] = field(factory=deque[Operation])

    def issue(self, operation: Operation) -> None:
        self.operations.append(operation)
        self.running.append(operation)

    def advance(self) -> None:
        """The oldest incomplete operation takes its next effect."""
        self.running[0].advance()
        if self.running[0].done:
            self.running.popleft()

    def complete(self, until: Operation | None = None) -> None:
        """Complete everything, or everything up to one operation, in order."""
        while self.running and (until is None or not until.done):
            self.running.popleft().complete()

    def cover(self, pending: int) -> list[Operation]:
        """What a wait covers: all but the youngest `pending`, now complete."""
        covered: list[Operation] = []
        while len(self.operations) > pending:
            operation = self.operations.popleft()
            self.complete(operation)
            covered.append(operation)
        return covered


@define(eq=False)
class Wave:
    """One wave: its symbols, its place in the program, and what it has under way."""

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
    flying: dict[Buffer, list[Operation]] = field(factory=dict[Buffer, list[Operation]])

    def queue(self, name: str) -> Completions:
        found = self.queues.get(name)
        if found is None:
            found = self.queues[name] = Completions(name)
        return found

    def event(self, stmt: Stmt, block: tuple[int, ...]) -> Event:
        """This execution of a statement."""
        frame = self.frames[-1]
        iteration = tuple((symbol.name, self.env[symbol]) for symbol in self.loops)
        return Event(stmt, block, self.number, (*frame.path, frame.index - 1), iteration, self.arrivals)

    def enter_loop(self, loop: For, turns: range) -> None:
        if not turns:
            return
        frame = self.frames[-1]
        self.loops.append(loop.symbol)
        self.env[loop.symbol] = turns[0]
        self.frames.append(Frame(loop.body, (*frame.path, frame.index - 1, 0), loop, turns))

    def enter_branch(self, stmt: If, *, holds: bool) -> None:
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
            if frame.loop is not None and frame.turn + 1 < len(frame.turns):
                frame.turn += 1
                frame.index = 0
                frame.path = (*frame.path[:-1], frame.turn)
                self.env[frame.loop.symbol] = frame.turns[frame.turn]
                continue
            self.frames.pop()
            self.last = frame.restore or self.last
            if frame.loop is not None:
                del self.env[self.loops.pop()]
        return None
