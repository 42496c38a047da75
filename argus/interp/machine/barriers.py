"""Barriers of a block: what arrivals, landings and waits do to phases and to what is known, and their faults."""

from __future__ import annotations

from attrs import define, field

from argus.core import barriers as semantics
from argus.core.ir import Buffer
from argus.interp.machine.clocks import Clock, Mark
from argus.interp.state import Block
from argus.interp.violation import Event, HaltError


@define(eq=False)
class Phased:
    """One memory barrier. owner: which block's it is, of several. arrived: what those of the current phase
    know; released: what completed phases tell.

    set_up: when its initialisation was executed; fenced: when that was fenced. underway: copies that will land on
    it, with the phase they were issued in. ended: what completed each phase.
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
        return f"`{self.buffer.name}[{self.index}]`{self.owner}"

    def arrive(self, block: Block, event: Event, thread: int, count: int, expected: int) -> None:
        """`count` arrivals, each of which announces `expected` bytes first."""
        before = self.state.phases
        self.state = semantics.arrive(self.state, count, count * expected)
        if self.state.overrun:
            text = f"{self.name} is arrived at {self.state.arrived} times in phase {before}, set up for"
            block.report("I8", f"{text} {self.state.count}", event, thread=thread, buffer=self.buffer.name)
            raise HaltError
        self._settle(block, event, thread, before)

    def land(self, block: Block, event: Event, thread: int, flight: int, bits: int, count: int) -> None:
        """`count` bytes of a copy have been written; those who wait for the phase know it."""
        before = self.state.phases
        del self.underway[flight]
        self.arrived.done |= bits
        self.state = semantics.complete_tx(self.state, count)
        self._settle(block, event, thread, before)

    def _settle(self, block: Block, event: Event, thread: int, before: int) -> None:
        if self.state.phases > before:
            self.released.join(self.arrived)
            self.ended.append(event)
            late = [found for phase, found in self.underway.values() if phase == before]
            if late:
                text = f"phase {before} of {self.name} completes while a copy that lands on it is under way"
                message = f"{text}: fewer bytes were announced than arrive"
                block.report("I7", message, event, thread=thread, buffer=self.buffer.name, other=late[0])
        elif self.state.arrived == self.state.count and self.state.bytes < 0:
            text = f"{-self.state.bytes} bytes more than announced land in phase {before} of {self.name}"
            block.report("I7", text, event, thread=thread, buffer=self.buffer.name)

    def passes(self, phase: int) -> bool:
        return semantics.passes(self.state, phase)

    def judge_wait(self, block: Block, event: Event, thread: int, phase: int) -> None:
        """A wait that ends must have found its own phase complete, and the next not."""
        if self.state.phases != phase + 1:
            text = f"the wait for phase {phase} of {self.name} ends though {self.state.phases} phases are complete"
            message = f"{text}: only parities are compared"
            block.report("I6", message, event, thread=thread, buffer=self.buffer.name)

    def missing(self) -> str:
        """What the current phase lacks."""
        lacks: list[str] = []
        if self.state.arrived < self.state.count:
            lacks.append(f"{self.state.count - self.state.arrived} of {self.state.count} arrivals missing")
        if self.state.bytes > 0:
            lacks.append(f"{self.state.bytes} bytes missing")
        elif self.state.bytes < 0:
            lacks.append(f"{-self.state.bytes} bytes more than announced")
        return f"phase {self.state.phases} is under way, {', '.join(lacks) or 'nothing missing'}"


@define(eq=False)
class Barriers:
    """All memory barriers of a block, by buffer and element. owner: as `Phased`."""

    strands: int
    owner: str = ""
    table: dict[tuple[Buffer, int], Phased] = field(factory=dict[tuple[Buffer, int], Phased])

    def set_up(self, buffer: Buffer, elements: int, count: int, mark: Mark) -> None:
        for index in range(elements):
            clocks = Clock.of(self.strands), Clock.of(self.strands)
            self.table[buffer, index] = Phased(buffer, index, semantics.Mbarrier(count), mark, *clocks, self.owner)

    def fence(self, marks: tuple[Mark, ...]) -> None:
        """The initialisations that these strands have executed are fenced."""
        for barrier in self.table.values():
            for mark in marks:
                if barrier.fenced is None and barrier.set_up[0] == mark[0]:
                    barrier.fenced = mark

    def find(self, block: Block, event: Event, thread: int, key: tuple[Buffer, int], clock: Clock) -> Phased:
        """The barrier that a statement uses. Its initialisation, fenced, must be known: I14."""
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
            why = "its initialisation is not fenced" if found.fenced is None else "no rendezvous has told of its fence"
            block.report("I14", f"{found.name} is used while {why}", event, thread=thread, buffer=buffer.name)
        return found


@define(eq=False)
class Meeting:
    """One named rendezvous. told: what those who have arrived know; released: what a filled generation tells."""

    name: str
    state: semantics.NamedBarrier
    told: Clock
    released: Clock

    def arrive(self, block: Block, event: Event, thread: int, threads: int, of: int) -> None:
        if of != self.state.threads or self.state.arrived + threads > self.state.threads:
            arrived = self.state.arrived + threads
            text = f"{arrived} threads arrive at `{self.name}` for {of}, others for {self.state.threads}"
            block.report("I8", text, event, thread=thread)
            raise HaltError
        before = self.state.generation
        self.state = semantics.arrive_named(self.state, threads)
        if self.state.generation > before:
            self.released.join(self.told)

    def missing(self) -> str:
        left = self.state.threads - self.state.arrived
        return f"{left} of {self.state.threads} threads missing"
