"""Barriers of a block: their state, the happens-before edges that they create, and violations of their protocol."""

from __future__ import annotations

from attrs import define, field

from argus.core import barriers as semantics
from argus.core.ir import Buffer
from argus.interp.machine.clocks import Clock, Mark
from argus.interp.state import Block
from argus.interp.violation import Event, HaltError


@define(eq=False)
class TrackedMbarrier:
    """One mbarrier with its clocks.

    owner: a suffix that identifies its block in a cluster. arrived: the joined clock of the arrivals of the current
    phase; released: the clock that a wait for a completed phase acquires. set_up: the timestamp of its initialisation;
    fenced: of the fence after it. underway: pending copies that complete on it, with the phase in which they were
    issued. ended: the event that completed each phase.
    """

    buffer: Buffer
    index: int
    state: semantics.Mbarrier
    set_up: Mark
    arrived: Clock
    released: Clock
    owner: str = ""
    fenced: Mark | None = None
    underway: dict[int, tuple[int, Event]] = field(factory=dict[int, tuple[int, Event]])
    ended: list[Event] = field(factory=list[Event])

    @property
    def name(self) -> str:
        """Its name in messages: `full[0]`."""
        return f"`{self.buffer.name}[{self.index}]`{self.owner}"

    def arrive(self, block: Block, event: Event, thread: int, count: int, expected: int) -> None:
        """Perform `count` arrivals, each after announcing `expected` bytes. Reports I8 if there are too many."""
        before = self.state.phases
        self.state = semantics.arrive(self.state, count, count * expected)
        if self.state.overrun:
            text = f"{self.name} gets {self.state.arrived} arrivals in phase {before}, but expects {self.state.count}"
            block.report("I8", text, event, thread=thread, buffer=self.buffer.name)
            raise HaltError
        self._settle(block, event, thread, before)

    def land(self, block: Block, event: Event, thread: int, op: int, bits: int, count: int) -> None:
        """Complete `count` bytes of a copy; waits for the phase acquire its clock bits. Reports I7."""
        before = self.state.phases
        del self.underway[op]
        self.arrived.done |= bits
        self.state = semantics.complete_tx(self.state, count)
        self._settle(block, event, thread, before)

    def _settle(self, block: Block, event: Event, thread: int, before: int) -> None:
        if self.state.phases > before:
            self.released.join(self.arrived)
            self.ended.append(event)
            late = [found for phase, found in self.underway.values() if phase == before]
            if late:
                text = f"phase {before} of {self.name} completes while a copy that signals it is in flight"
                message = f"{text}: fewer bytes were announced than are copied"
                block.report("I7", message, event, thread=thread, buffer=self.buffer.name, other=late[0])
        elif self.state.arrived == self.state.count and self.state.bytes < 0:
            text = f"{-self.state.bytes} bytes more than announced arrive in phase {before} of {self.name}"
            block.report("I7", text, event, thread=thread, buffer=self.buffer.name)

    def passes(self, phase: int) -> bool:
        """Whether a wait for `phase` returns; parities are compared."""
        return semantics.passes(self.state, phase)

    def check_wait(self, block: Block, event: Event, thread: int, phase: int) -> None:
        """Report a wait that returns although `phase` is not the last completed phase (I6)."""
        if self.state.phases != phase + 1:
            text = f"the wait for phase {phase} of {self.name} returns although {self.state.phases} phases are complete"
            message = f"{text}: only parities are compared"
            block.report("I6", message, event, thread=thread, buffer=self.buffer.name)

    def missing(self) -> str:
        """What is missing to complete the current phase, in words."""
        lacks: list[str] = []
        if self.state.arrived < self.state.count:
            lacks.append(f"{self.state.count - self.state.arrived} of {self.state.count} arrivals missing")
        if self.state.bytes > 0:
            lacks.append(f"{self.state.bytes} bytes missing")
        elif self.state.bytes < 0:
            lacks.append(f"{-self.state.bytes} bytes more than announced")
        return f"in phase {self.state.phases}, {', '.join(lacks) or 'nothing missing'}"


@define(eq=False)
class Barriers:
    """All mbarriers of a block, by buffer and element. owner: as in `TrackedMbarrier`."""

    strands: int
    owner: str = ""
    table: dict[tuple[Buffer, int], TrackedMbarrier] = field(factory=dict[tuple[Buffer, int], TrackedMbarrier])

    def set_up(self, buffer: Buffer, elements: int, count: int, mark: Mark) -> None:
        """Initialise all elements of a buffer for `count` arrivals per phase."""
        for index in range(elements):
            clocks = Clock.of(self.strands), Clock.of(self.strands)
            self.table[buffer, index] = TrackedMbarrier(
                buffer, index, semantics.Mbarrier(count), mark, *clocks, self.owner
            )

    def fence(self, marks: tuple[Mark, ...]) -> None:
        """Fence the initialisations that these strands have executed."""
        for barrier in self.table.values():
            for mark in marks:
                if barrier.fenced is None and barrier.set_up[0] == mark[0]:
                    barrier.fenced = mark

    def find(self, block: Block, event: Event, thread: int, key: tuple[Buffer, int], clock: Clock) -> TrackedMbarrier:
        """The mbarrier that a statement uses. Reports I14 unless its fenced initialisation happens before `clock`."""
        buffer, index = key
        found = self.table.get(key)
        if found is None:
            elements = max((i for held, i in self.table if held is buffer), default=-1)
            why = f"has {elements + 1} elements" if elements >= 0 else "is not initialised"
            code = "I37" if elements >= 0 else "I14"
            text = f"`{buffer.name}[{index}]`{self.owner} is used: `{buffer.name}` {why}"
            block.report(code, text, event, thread=thread)
            raise HaltError
        if found.fenced is None or not clock.knows((found.fenced,)):
            why = "its initialisation is not fenced"
            if found.fenced is not None:
                why = "no barrier lies between the fence of its initialisation and this use"
            block.report("I14", f"{found.name} is used, but {why}", event, thread=thread, buffer=buffer.name)
        return found


@define(eq=False)
class TrackedNamedBarrier:
    """One named barrier with its clocks.

    arrived: the joined clock of the threads that have arrived; released: the clock that a wait acquires.
    """

    name: str
    state: semantics.NamedBarrier
    arrived: Clock
    released: Clock

    def arrive(self, block: Block, event: Event, thread: int, threads: int, of: int) -> None:
        """Let `threads` threads arrive, which expect `of` in all. Reports I8 if the counts don't agree."""
        if of != self.state.threads or self.state.arrived + threads > self.state.threads:
            arrived = self.state.arrived + threads
            expected = f"{of} expected here, {self.state.threads} elsewhere"
            text = f"{arrived} threads arrive at `{self.name}`: {expected}"
            block.report("I8", text, event, thread=thread)
            raise HaltError
        before = self.state.generation
        self.state = semantics.arrive_named(self.state, threads)
        if self.state.generation > before:
            self.released.join(self.arrived)

    def missing(self) -> str:
        """What is missing to release the waiting threads, in words."""
        left = self.state.threads - self.state.arrived
        return f"{left} of {self.state.threads} threads missing"
