"""Race detection in shared memory for agents, by vector clocks, and visibility between generic and async proxy.

Lanes of one strand are ordered, as a warp executes. An asynchronous operation lasts from its issue until a wait for it
happens before the access in question.
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
"""An mbarrier: its buffer and its element."""


@define(eq=False)
class StrandAccess:
    """One statement's reads or writes of one shared buffer, by one strand or by one asynchronous operation.

    agent: its name for messages. base: the agent's first thread in the block. rows: the threads of the agent, rows of
    `place`. marks: timestamps of the issue. bit: the clock bit of the operation's completion, None for a synchronous
    access. queue: of the operation. proxied: by the async proxy. cells: a bit set, without cells that a later, ordered
    access covers. lands: the mbarrier that the operation signals. skipped_waits: per mbarrier, the reading unit's last
    wait that was not for the phase after the previous one, and its phase.
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
    skipped_waits: Mapping[Key, tuple[Event, int]] = field(factory=dict[Key, tuple[Event, int]])

    def ordered(self, clock: Clock) -> bool:
        """Whether it is complete before an access with this clock."""
        return clock.knows(self.marks) if self.bit is None else bool(clock.done >> self.bit & 1)

    def published(self, clock: Clock) -> bool:
        """Whether a proxy fence makes it visible to async-proxy accesses with this clock."""
        return clock.published(self.marks) if self.bit is None else bool(clock.fenced_done >> self.bit & 1)

    def holder(self, cell: int) -> tuple[int, int]:
        """The thread of the block, and the register, that access a cell."""
        first, last = self.rows
        touched = self.place.address[first:last] == cell
        if self.place.inside is not None:
            touched = touched & self.place.inside[first:last]
        lane, value = first_where(touched)
        return self.base + first + lane, value


@define(eq=False)
class ShadowMemory:
    """ShadowMemory memory: the accesses of one block that may still conflict with later ones."""

    prepared: Prepared
    reporter: Reporter
    _live: dict[Buffer, list[StrandAccess]] = field(
        factory=lambda: defaultdict[Buffer, list[StrandAccess]](list), init=False
    )

    def note(self, touch: StrandAccess, clock: Clock) -> None:
        """Check an access with this clock against all earlier ones, then record it."""
        kept: list[StrandAccess] = []
        for earlier in self._live[touch.buffer]:
            both = earlier.cells & touch.cells
            if both and (earlier.event is not touch.event or earlier.bit is None):
                self._against(earlier, touch, clock, both)
            if earlier.cells:
                kept.append(earlier)
        kept.append(touch)
        self._live[touch.buffer] = kept

    def _against(self, earlier: StrandAccess, touch: StrandAccess, clock: Clock, both: int) -> None:
        ordered = earlier.ordered(clock)
        if earlier.writes or touch.writes:
            unseen = touch.proxied and earlier.writes and not earlier.proxied and not earlier.published(clock)
            if not ordered:
                self._report(*_conflict(earlier, touch, clock, fenced=not unseen), earlier, touch, both)
            elif unseen:
                why = "no proxy fence by the writer followed by a barrier lies between"
                what = f"`{touch.buffer.name}` is {_async_use(touch)} after generic-proxy writes: {why}"
                self._report("I12", what, earlier, touch, both)
        if touch.writes or (ordered and not earlier.writes):
            earlier.cells &= ~both

    def _report(self, code: str, message: str, earlier: StrandAccess, touch: StrandAccess, cells: int) -> None:
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
                _describe(earlier, other_thread, other_value),
                _describe(touch, thread, value),
            ),
            related=_skipped_wait(earlier, touch),
        )


def _describe(touch: StrandAccess, thread: int, value: int) -> tuple[str, str]:
    verb = "write" if touch.writes else "read"
    how = f", asynchronous ({touch.queue})" if touch.queue else f", its element {value}"
    return verb, f"{touch.agent}, thread {thread}{how}"


def _async_use(touch: StrandAccess) -> str:
    return "overwritten by an asynchronous copy" if touch.writes else "read by an asynchronous operation"


def _skipped_wait(earlier: StrandAccess, touch: StrandAccess) -> tuple[tuple[Stmt, str], ...]:
    """The reader's wait that skipped a phase of the mbarrier that the copy signals, if there is one."""
    found = None if touch.writes or earlier.lands is None else touch.skipped_waits.get(earlier.lands)
    if found is None:
        return ()
    event, phase = found
    return ((event.stmt, f"waits for phase {phase} out of order"),)


def _conflict(earlier: StrandAccess, touch: StrandAccess, clock: Clock, *, fenced: bool) -> tuple[str, str]:
    """The invariant that two unordered accesses violate, and the message."""
    name = touch.buffer.name
    if earlier.queue and not earlier.writes:
        if earlier.queue == "bulk":
            why = "no wait by its issuer followed by a barrier lies between"
            return "I13", f"`{name}` is overwritten while a bulk store may still read it: {why}"
        if clock.knows_any(earlier.marks):
            why = "no wait that covers it lies between"
            return "I10", f"`{name}` is overwritten while a wgmma may still read it: {why}"
    if not earlier.queue and earlier.writes and touch.proxied:
        why = "no barrier lies between" if fenced else "no proxy fence followed by a barrier lies between"
        return "I12", f"`{name}` is {_async_use(touch)} while generic-proxy writes to it may be in flight: {why}"
    verb = "written" if touch.writes else "read"
    if earlier.queue == "cp_async" and clock.knows(earlier.marks):
        return "I31", f"`{name}` is {verb} while the copy into it is in flight"
    doing = "writes" if earlier.writes else "reads"
    if _skipped_wait(earlier, touch):
        why = f"{touch.agent} has not waited for every phase of its barrier in order"
        return "I6", f"`{name}` is read by {touch.agent} while {earlier.agent} writes it: {why}"
    code = "I5" if earlier.writes or earlier.queue or touch.queue else "I36"
    return code, f"`{name}` is {verb} by {touch.agent} while {earlier.agent} {doing} it: nothing orders them"
