"""Accesses to shared memory and whether they are ordered: races and the visibility between the two proxies.

Lanes of one strand are in order of each other, as a warp executes. An asynchronous operation lasts from its issue to
the wait that somebody's clock has seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from attrs import define, field

from argus.core.ir import Buffer, Stmt
from argus.interp.compiled_kernel import Prepared, first_where
from argus.interp.machine.clocks import Clock, Mark
from argus.interp.memory.views import Place
from argus.interp.state import shared_element
from argus.interp.violation import Event, Reporter

Key = tuple[Buffer, int]
"""A barrier: its buffer and its element."""


@define(eq=False)
class Touch:
    """One statement's reads or writes of one shared buffer, by one strand or by one asynchronous operation.

    agent: as a person reads it. base: first thread of the agent in the block. rows: of `place`, which threads of the
    agent these are. marks: when it was issued. bit: of the operation's completion, None for one that is done at once.
    queue: of the operation. proxied: by the asynchronous proxy. cells: the bits of a number; those that a later,
    ordered access has taken over are dropped. lands: the barrier that the operation completes on. astray: of barriers,
    the wait of who reads that was not for the phase after the one before, and its phase.
    """

    event: Event
    agent: str
    base: int
    buffer: Buffer
    writes: bool
    cells: int
    place: Place
    rows: tuple[int, int]
    marks: tuple[Mark, ...]
    bit: int | None = None
    queue: str = ""
    proxied: bool = False
    lands: Key | None = None
    astray: Mapping[Key, tuple[Event, int]] = field(factory=dict[Key, tuple[Event, int]])

    def ordered(self, clock: Clock) -> bool:
        """Whether it is over for one who knows this."""
        return clock.knows(self.marks) if self.bit is None else bool(clock.done >> self.bit & 1)

    def published(self, clock: Clock) -> bool:
        return clock.published(self.marks) if self.bit is None else bool(clock.fenced_done >> self.bit & 1)

    def holder(self, cell: int) -> tuple[int, int]:
        """Thread of the block and value that touch a cell."""
        first, last = self.rows
        touched = self.place.address[first:last] == cell
        if self.place.inside is not None:
            touched = touched & self.place.inside[first:last]
        lane, value = first_where(touched)
        return self.base + first + lane, value


@define(eq=False)
class Shadow:
    """The accesses of one block that may still conflict with others."""

    prepared: Prepared
    reporter: Reporter
    _live: dict[Buffer, list[Touch]] = field(factory=lambda: defaultdict[Buffer, list[Touch]](list), init=False)

    def note(self, touch: Touch, clock: Clock) -> None:
        """Judge an access by one who knows this much against all before, then keep it."""
        kept: list[Touch] = []
        for earlier in self._live[touch.buffer]:
            both = earlier.cells & touch.cells
            if both and (earlier.event is not touch.event or earlier.bit is None):
                self._against(earlier, touch, clock, both)
            if earlier.cells:
                kept.append(earlier)
        kept.append(touch)
        self._live[touch.buffer] = kept

    def _against(self, earlier: Touch, touch: Touch, clock: Clock, both: int) -> None:
        ordered = earlier.ordered(clock)
        if earlier.writes or touch.writes:
            unseen = touch.proxied and earlier.writes and not earlier.proxied and not earlier.published(clock)
            if not ordered:
                self._report(*_conflict(earlier, touch, clock, fenced=not unseen), earlier, touch, both)
            elif unseen:
                why = "no proxy fence of the writer and rendezvous lie between"
                what = f"`{touch.buffer.name}` is {_async_use(touch)} after ordinary writes: {why}"
                self._report("I12", what, earlier, touch, both)
        if touch.writes or (ordered and not earlier.writes):
            earlier.cells &= ~both

    def _report(self, code: str, message: str, earlier: Touch, touch: Touch, cells: int) -> None:
        cell = (cells & -cells).bit_length() - 1
        thread, value = touch.holder(cell)
        other_thread, other_value = earlier.holder(cell)
        self.reporter.report(
            code,
            message,
            touch.event,
            thread=thread,
            value=value,
            element=shared_element(self.prepared, touch.buffer, cell),
            buffer=touch.buffer.name,
            other=earlier.event,
            other_thread=other_thread,
            facts=(
                _told(earlier, other_thread, other_value),
                _told(touch, thread, value),
            ),
            related=_wait_astray(earlier, touch),
        )


def _told(touch: Touch, thread: int, value: int) -> tuple[str, str]:
    verb = "write" if touch.writes else "read"
    how = f", asynchronous ({touch.queue})" if touch.queue else f", element {value} of it"
    return verb, f"{touch.agent}, thread {thread}{how}"


def _async_use(touch: Touch) -> str:
    return "overwritten by an asynchronous copy" if touch.writes else "read by an asynchronous operation"


def _wait_astray(earlier: Touch, touch: Touch) -> tuple[tuple[Stmt, str], ...]:
    """The wait out of turn on the barrier that a copy lands on, of who reads what it writes."""
    found = None if touch.writes or earlier.lands is None else touch.astray.get(earlier.lands)
    if found is None:
        return ()
    event, phase = found
    return ((event.stmt, f"waits for phase {phase} out of turn"),)


def _conflict(earlier: Touch, touch: Touch, clock: Clock, *, fenced: bool) -> tuple[str, str]:
    """The invariant that two unordered accesses break, and how."""
    name = touch.buffer.name
    if earlier.queue and not earlier.writes:
        if earlier.queue == "bulk":
            why = "its issuer's wait and a rendezvous do not lie between"
            return "I13", f"`{name}` is overwritten while a bulk store may still read it: {why}"
        if clock.knows_of(earlier.marks):
            why = "the wait that covers it does not lie between"
            return "I10", f"`{name}` is overwritten while a multiplication may still read it: {why}"
    if not earlier.queue and earlier.writes and touch.proxied:
        why = "no rendezvous lies between" if fenced else "no proxy fence and rendezvous lie between"
        return "I12", f"`{name}` is {_async_use(touch)} while ordinary writes to it may be under way: {why}"
    verb = "written" if touch.writes else "read"
    if earlier.queue == "cp_async" and clock.knows(earlier.marks):
        return "I31", f"`{name}` is {verb} while the copy into it is in flight"
    doing = "writes" if earlier.writes else "reads"
    if _wait_astray(earlier, touch):
        why = f"{touch.agent} has not waited for the phases of its barrier one after the other"
        return "I6", f"`{name}` is read by {touch.agent} while {earlier.agent} writes it: {why}"
    code = "I5" if earlier.writes or earlier.queue or touch.queue else "I36"
    return code, f"`{name}` is {verb} by {touch.agent} while {earlier.agent} {doing} it: nothing orders them"
