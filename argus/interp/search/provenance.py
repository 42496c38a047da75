"""Traces the provenance of a wrong element, from its tensor, by repeating the failing run with a journal of writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from attrs import define, field, frozen

from argus.core.ir import Alloc, Buffer, Copy, Mma, Strided, walk
from argus.core.verdict import Hop, HopKind, Place
from argus.core.walk import evaluate
from argus.interp.compiled_kernel import Prepared, registers_of
from argus.interp.memory.trace import FaultContext, Journal, Spot, Write
from argus.interp.run import run_prepared
from argus.interp.search.schedule import Schedule
from argus.interp.state import coordinates, shared_element
from argus.interp.violation import Violation

DATA_FLOW = frozenset(("I1", "I2", "I3", "I4", "I27", "I35", "I39"))
"""Invariants about the identity of elements, whose violations provenance explains."""

_LONGEST = 24
"""The number of hops to report; earlier ones are omitted."""


@frozen
class Provenance:
    """elements: the faulty elements that the run reported. alike: further elements that fail in the same way.

    hops: the statements that produced `elements`, in program order.
    """

    elements: tuple[Place, ...] = ()
    hops: tuple[Hop, ...] = ()
    alike: tuple[Place, ...] = ()


def trace_provenance(
    prepared: Prepared, sizes: Mapping[str, int], schedule: Schedule, violation: Violation
) -> Provenance:
    """The provenance of the elements of a violation of this run; empty for invariants that are not about data flow.

    Elements that the kernel itself stored to a tensor are traced further, to their sources.
    """
    if violation.code not in DATA_FLOW:
        return Provenance()
    journal = Journal()
    outcome = run_prepared(prepared, sizes, None, schedule, tags=True, values=False, journal=journal)
    if violation not in outcome.violations:
        return Provenance()
    follower = _Follower(prepared, sizes, journal)
    starts = follower.starts(violation)
    hops = tuple(hop for spot in starts for hop in follower.follow(spot))
    places = tuple(follower.place(spot) for spot in starts)
    more = (follower.place(spot) for spot in follower.alike(violation))
    return Provenance(places, hops, tuple(place for place in more if place not in places))


@define(eq=False)
class _Follower:
    """Follows cells backwards through the journal. seen: elements already visited, so that shared paths appear once."""

    prepared: Prepared
    sizes: Mapping[str, int]
    journal: Journal
    seen: set[tuple[Write, int]] = field(factory=set[tuple[Write, int]], init=False)

    def starts(self, violation: Violation) -> tuple[Spot, ...]:
        """The faulty cells: those that the report names as origins, else the cell of the reported element."""
        fault = violation.code, violation.stmt, violation.other
        context = self.journal.contexts.get(fault)
        if context is not None and context.origins:
            return context.origins
        buffer = self._buffer(violation.buffer)
        if buffer is None or violation.element is None:
            return ()
        if buffer.space == "global":
            tensor = self.journal.tensors[buffer]
            return (Spot(buffer, tensor, self._offset(buffer, violation.element), self.journal.moment),)
        if context is None or buffer.space != "register" or violation.value is None:
            return ()
        return (_register(context, buffer, violation.thread, violation.value),)

    def alike(self, violation: Violation) -> tuple[Spot, ...]:
        """Further cells that fail in the same way."""
        context = self.journal.contexts.get((violation.code, violation.stmt, violation.other))
        return () if context is None else context.alike

    def follow(self, spot: Spot) -> Iterator[Hop]:
        """The hops that lead to a cell; hops of the sources come first."""
        if spot.cell < 0 or len(self.seen) >= _LONGEST:
            return
        found = self.journal.last_write(spot)
        if found is None or found in self.seen:
            return
        self.seen.add(found)
        write, element = found
        sources = write.origins(element)
        for source in sources:
            yield from self.follow(source)
        yield Hop(
            _kind(write),
            write.event.stmt.span,
            write.event.block,
            write.thread(element),
            write.event.iteration,
            self.place(spot),
            tuple(self.place(source) for source in sources),
        )

    def place(self, spot: Spot) -> Place:
        """The element that a cell holds."""
        buffer = spot.buffer
        return Place(buffer.name, buffer.space, None if spot.cell < 0 else self._element(buffer, spot.cell))

    def _element(self, buffer: Buffer, cell: int) -> tuple[int, ...]:
        if buffer.space == "register":
            return coordinates(buffer, *divmod(cell, registers_of(buffer)[1]))
        if buffer.space == "shared":
            return shared_element(self.prepared, buffer, cell)
        found: list[int] = []
        for stride in self._strides(buffer):
            found.append(cell // max(1, stride))
            cell %= max(1, stride)
        return tuple(found)

    def _offset(self, buffer: Buffer, element: tuple[int, ...]) -> int:
        return sum(at * stride for at, stride in zip(element, self._strides(buffer), strict=True))

    def _strides(self, buffer: Buffer) -> tuple[int, ...]:
        env = {symbol: self.sizes[symbol.name] for symbol in self.prepared.kernel.sizes}
        strides = cast(Strided, buffer.layout).strides
        return tuple(int(cast(int, evaluate(stride, env))) for stride in strides)

    def _buffer(self, name: str) -> Buffer | None:
        kernel = self.prepared.kernel
        made = (stmt.buffer for stmt in walk(kernel.body) if isinstance(stmt, Alloc))
        return next((buffer for buffer in (*kernel.parameters, *made) if buffer.name == name), None)


def _register(context: FaultContext, buffer: Buffer, thread: int, value: int) -> Spot:
    cell = (thread - context.base) * registers_of(buffer)[1] + value
    return Spot(buffer, context.cells(buffer), cell, context.moment)


def _kind(write: Write) -> HopKind:
    stmt = write.event.stmt
    return "copy" if isinstance(stmt, Copy) else "product" if isinstance(stmt, Mma) else "computation"
