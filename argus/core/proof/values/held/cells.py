"""What every cell of one control path holds, as expressions: computed where it is asked for, each step once.

Registers follow program order: a state is the last write, or a choice between it and the state before. Reads of shared
memory are resolved by the reaching definitions of `Flow`, loops by `loops`. All of it presumes what other obligations
prove: no race, no missing wait, accesses in bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
from attrs import define, field, frozen

from argus.core import algebra
from argus.core.dtype import DType
from argus.core.index import Index, Symbol
from argus.core.ir import Alloc, Buffer, Copy, Fold, Map, Mma, Reset, Stmt
from argus.core.ir.element_walk import dtype_of, gets
from argus.core.layout import TV
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.lookup import agent_symbol_of_cells, substitute_agent
from argus.core.proof.dataflow.reaching import Flow, ReachingWrite
from argus.core.proof.dataflow.timeline import Loop, Segment, Step, is_shuffle, is_whole
from argus.core.proof.values.held import fractions
from argus.core.proof.values.held.elements import Elements, bounds, element_in_views, not_of_reals
from argus.core.proof.values.held.facts import Known, Questions
from argus.core.proof.values.held.finite_casts import Casts
from argus.core.proof.values.held.folds import before, reduced
from argus.core.proof.values.held.instructions import multiplied
from argus.core.proof.values.held.joined import of_numbers
from argus.core.proof.values.held.moves import shuffled
from argus.core.proof.values.held.running_sums import is_running_sum
from argus.core.proof.values.held.senders import sent
from argus.core.proof.values.held.shared_reads import found_by
from argus.core.proof.values.held.tables import BoolArray, Positions, Tables, alike_columns, shape_of
from argus.core.proof.values.held.taking import takes
from argus.core.proof.values.held.terms import chosen, number, operation_of, plus, replaced, unknown
from argus.core.proof.values.held.whole_numbers import limits, rounds_places
from argus.core.values.expr import Element, Expr, ReduceOp, element
from argus.core.values.rewriting import nodes
from argus.core.values.rewriting import substitute as over_coordinates
from argus.core.walk import substitute, symbols

_Kept = tuple[dict[Step, Expr], dict[tuple[Buffer, Step], Expr]]
_REDUCTIONS: dict[str, ReduceOp] = {
    "add": "sum",
    "mul": "product",
    "max": "max",
    "min": "min",
    "max_nan": "max",
    "min_nan": "min",
}


@frozen
class Rounding:
    """A statement that rounds to a type what an operation computes (`operation_of`)."""

    dtype: DType
    stmt: Stmt
    of: str


@define(eq=False)
class Cells:
    """The values of the cells of one flow.

    at_head: the value of a register tile at the head of a loop, and after it (`loops`). before: what tensors hold
    before the kernel, over the coordinates of an element; those that are not named hold elements of their own.
    through_views: whether elements are those of tensors before `flattened_views`.
    """

    flow: Flow
    at_head: Callable[[Cells, Segment, Loop, Buffer], Expr]
    after_loop: Callable[[Cells, Segment, Loop, Buffer], Expr]
    before: Mapping[Buffer, Expr]
    through_views: bool = True
    tables: Tables = field(factory=Tables)
    questions: Questions = field(factory=Questions)
    roundings: dict[Step, set[Rounding]] = field(factory=dict[Step, "set[Rounding]"])
    sources: dict[Step, set[Step]] = field(factory=dict[Step, "set[Step]"])
    casts: Casts = field(factory=Casts)
    _written: dict[Step, Expr] = field(factory=dict[Step, Expr], init=False)
    _after: dict[tuple[Buffer, Step], Expr] = field(factory=dict["tuple[Buffer, Step]", Expr], init=False)
    _events: dict[tuple[Segment, Buffer], list[Step]] = field(
        factory=dict["tuple[Segment, Buffer]", "list[Step]"], init=False
    )
    _opaque: dict[Segment, _Kept] = field(factory=dict["Segment", "_Kept"], init=False)
    _running: list[Step] = field(factory=list[Step], init=False)
    _apart: list[int] = field(factory=lambda: [0], init=False)

    @property
    def thread(self) -> Symbol:
        return self.flow.timeline.kernel.thread

    # -- integers over a fragment ------------------------------------------------------------------------

    def coordinates(self, by: TV) -> list[Index]:
        """The coordinates of the elements of a layout."""
        shape = by.threads.size(), by.values.size()
        return [self.tables.index(np.broadcast_to(axis, shape)) for axis in by.coordinates()]

    def threads(self, shape: tuple[int, int]) -> dict[Symbol, Index]:
        """The thread symbol as a table."""
        return {self.thread: self.tables.index(np.broadcast_to(np.arange(shape[0])[:, None], shape))}

    # -- steps -------------------------------------------------------------------------------------------

    def written(self, step: Step) -> Expr:
        """What a step writes, over the elements of its write."""
        if self._running:
            self.sources.setdefault(self._running[-1], set()).add(step)
        if step in self._written:
            return self._written[step]
        if step in self._running[self._apart[-1] :]:
            return unknown("it depends on itself through shared memory")
        self._running.append(step)
        found = self._written[step] = self._evaluate(step)
        self._running.pop()
        return found

    @contextmanager
    def of_one_iteration(self, segment: Segment) -> Generator[None]:
        """Evaluates what is asked for inside in terms of opaque tiles of the segment's loop, apart from all else."""
        outer = self._running, self._written, self._after
        self._running = self._running[-1:]
        self._apart.append(len(self._running))
        self._written, self._after = self._opaque.setdefault(segment, ({}, {}))
        yield
        self._apart.pop()
        self._running, self._written, self._after = outer

    def forget(self, segment: Segment, tile: Element) -> None:
        """Forget what was computed from an opaque tile of a segment's loop."""
        for kept in self._opaque[segment]:
            for key in [each for each, value in kept.items() if tile in set(nodes(value))]:
                del kept[key]  # pyright: ignore[reportArgumentType]

    def _evaluate(self, step: Step) -> Expr:
        stmt, accesses = step.stmt, self.flow.accesses.of(step)
        match stmt:
            case Copy() if is_shuffle(stmt):
                return shuffled(self.tables, stmt, self.read(accesses[0]), self.flow.timeline.kernel.target.unit)
            case Copy():
                found = self.read(accesses[0])
                if stmt.source.buffer.dtype != stmt.target.buffer.dtype:
                    self._rounds(step, stmt.target.buffer.dtype, found)
                return found
            case Map():
                return self._mapped(step, stmt)
            case Fold():
                return self._folded(step, stmt)
            case Mma():
                product = multiplied(self.tables, stmt, self.read(accesses[0]), self.read(accesses[1]))
                if stmt.init is algebra.TRUE:
                    return product
                before = self.register(stmt.target.buffer, step)
                return chosen(stmt.init, product, plus(before, product))
            case _:
                return unknown(f"`{type(stmt).__name__}`")

    def _rounds(self, step: Step, dtype: DType, value: Expr) -> None:
        self.roundings.setdefault(step, set()).add(Rounding(dtype, step.stmt, operation_of(value)))
        self.casts.add(step, dtype, value)

    def _mapped(self, step: Step, stmt: Map) -> Expr:
        reason = not_of_reals(stmt)
        if reason or not is_whole(stmt.target):
            return unknown(reason or "an element at another index of a register tile")
        accesses = self.flow.accesses.of(step)
        layout, shape = stmt.target.buffer.layout, accesses[-1].shape
        assert isinstance(layout, TV)
        operands = {get: self.read(each) for get, each in zip(gets(stmt.elem), accesses, strict=False)}
        at, thread = self.coordinates(layout), self.threads(shape)
        own = stmt.target.buffer.dtype
        elements = Elements(
            own,
            operands,
            lambda index: substitute(index, thread, at),
            lambda cond: substitute(cond, thread, at),
            partial(self._rounds, step),
            Known(self.flow, step.context, self.questions).holds,
            is_running_sum(stmt),
            *limits(self.flow.timeline.kernel, self.before.values(), stmt.target.buffer, self.flow.decided),
        )
        found = elements.stored(stmt.elem)
        for narrow in rounds_places(stmt.elem, own):
            self.roundings.setdefault(step, set()).add(Rounding(narrow, stmt, operation_of(found)))
        if dtype_of(stmt.elem) not in (None, own):
            self._rounds(step, own, found)
        return found

    def _folded(self, step: Step, stmt: Fold) -> Expr:
        source = self.read(self.flow.accesses.of(step)[0])
        found = takes(stmt, self.flow.timeline.kernel.target.unit)
        exact = stmt.op not in ("add", "mul") or stmt.source.buffer.dtype.family == "float"
        if found is None or not exact:
            return unknown("a fold of integers that wraps around, or of nothing")
        source = fractions.simplified(source, Known(self.flow, step.context, self.questions))
        names = self.tables.of(source)
        if not all(found.replicated(self.tables.known[name]) for name in names):
            return unknown("threads that hold one element of a row hold different values")
        if stmt.op == "last":
            return self.tables.at(source, found.first)
        if stmt.op not in _REDUCTIONS:
            return unknown(f"a fold by `{stmt.op}`")
        size = found.cells.shape[1]
        cells = found.cells.reshape(*found.shape, size)
        there: BoolArray = cells >= 0
        counts = None if bool(there.all()) else np.count_nonzero(there, axis=-1)
        if counts is not None and not np.array_equal(there, before(counts, size)):
            return unknown("a fold of elements that are not the first of their row")
        taken = {name: self.tables.known[name].ravel()[np.maximum(cells, 0)] for name in names}
        return reduced(self.tables, _REDUCTIONS[stmt.op], source, taken, size, counts)

    # -- registers ---------------------------------------------------------------------------------------

    def register(self, buffer: Buffer, at: Step) -> Expr:
        """What a register tile holds just before a step, by (thread, value) of its layout."""
        segment = self.flow.timeline.segments[at.segment]
        return self.after(
            buffer, segment, [each for each in self.events(segment, buffer) if each.position < at.position]
        )

    def events(self, segment: Segment, buffer: Buffer) -> list[Step]:
        """The steps of a segment that write, allocate or reset a tile."""
        key = segment, buffer
        if key not in self._events:
            self._events[key] = [step for step in segment.steps if self._touches(step, buffer)]
        return self._events[key]

    def _touches(self, step: Step, buffer: Buffer) -> bool:
        if isinstance(step.stmt, Alloc | Reset):
            return step.stmt.buffer is buffer
        return any(a.mode == "write" and a.view.buffer is buffer for a in self.flow.accesses.of(step))

    def after(self, buffer: Buffer, segment: Segment, events: list[Step]) -> Expr:
        """The state after some of the first writes of a segment."""
        complete = [number for number, each in enumerate(events) if self.overwrites(each, buffer)]
        known = [number for number, each in enumerate(events) if (buffer, each) in self._after]
        first = max((*complete, *(number + 1 for number in known)), default=0)
        if known and first == known[-1] + 1:
            state = self._after[buffer, events[known[-1]]]
        elif complete:
            state = unknown("nothing")
        else:
            state = self.start(segment, buffer)
        for step in events[first:]:
            state = self._after[buffer, step] = self._updated(buffer, state, step)
        return state

    def start(self, segment: Segment, buffer: Buffer) -> Expr:
        """The state at the start of a segment; in a loop that writes the tile, of an arbitrary iteration."""
        if segment.loop is not None and self.events(segment, buffer):
            return self.at_head(self, segment, segment.loop, buffer)
        return self.entry(segment, buffer)

    def entry(self, segment: Segment, buffer: Buffer) -> Expr:
        """The state before the first execution of a segment."""
        line = self.flow.timeline.segments
        for earlier in reversed(line[: line.index(segment)]):
            events = self.events(earlier, buffer)
            if events and earlier.loop is not None:
                return self.after_loop(self, earlier, earlier.loop, buffer)
            if events:
                return self.after(buffer, earlier, events)
        return unknown(f"`{buffer.name}` is not written")

    def overwrites(self, step: Step, buffer: Buffer) -> bool:
        """Whether the state after a step does not depend on that before."""
        if isinstance(step.stmt, Alloc | Reset):
            return True
        if step.guard is not algebra.TRUE or (isinstance(step.stmt, Mma) and step.stmt.init is not algebra.TRUE):
            return False
        return self._covers(self._write(step, buffer), buffer)

    def _write(self, step: Step, buffer: Buffer) -> Access:
        return next(a for a in self.flow.accesses.of(step) if a.mode == "write" and a.view.buffer is buffer)

    def _covers(self, write: Access, buffer: Buffer) -> bool:
        if write.mask is not None or write.places is None:
            return False
        table = write.places[0].table
        shape = shape_of(buffer)
        return table.shape == shape and bool((table == np.arange(table.size).reshape(shape)).all())

    def _updated(self, buffer: Buffer, state: Expr, step: Step) -> Expr:
        if isinstance(step.stmt, Alloc | Reset):
            return unknown(f"`{buffer.name}` is not written")
        write, shape = self._write(step, buffer), shape_of(buffer)
        if write.places is None:
            return unknown("a write to registers of other threads")
        value = self.written(step)
        if not self._covers(write, buffer):
            writer = np.full(shape[0] * shape[1], -1, np.int64)
            active = write.active.ravel()
            writer[write.places[0].table.ravel()[active]] = np.flatnonzero(active)
            writer = writer.reshape(shape)
            source = np.maximum(writer, 0)
            value = self.tables.at(value, (source // write.shape[1], source % write.shape[1]))
            joined = self.tables.joined(writer >= 0, value, state)
            value = chosen(self.tables.mask(writer >= 0), value, state) if joined is None else joined
        return chosen(substitute(step.guard, self.threads(shape)), value, state)

    # -- reads -------------------------------------------------------------------------------------------

    def read(self, access: Access) -> Expr:
        """What a read finds, over its elements."""
        buffer = access.view.buffer
        if access.view.peer is not None:
            return sent(self.flow, access, access.view.peer, self.read)
        if buffer.space == "register":
            return self._read_register(access, buffer)
        if buffer.space == "global":
            return self._load(access)
        agent = agent_symbol_of_cells(access)
        if agent is None:
            return self._read_shared(access)
        assert agent.low is not None
        assert agent.high is not None
        numbers = range(agent.low, agent.high + 1)
        values = [self._read_shared(substitute_agent(access, {agent: algebra.const(each)})) for each in numbers]
        found = of_numbers(values, agent, agent.low)
        if found is None:
            found = values[-1]
            for number_, one in reversed(list(zip(numbers, values, strict=True))[:-1]):
                found = chosen(algebra.eq(algebra.sym(agent), number_), one, found)
        return found

    def _read_register(self, access: Access, buffer: Buffer) -> Expr:
        if access.places is None:
            return unknown("a register tile whose elements another thread holds")
        state = self.register(buffer, access.step)
        table, values = access.places[0].table, shape_of(buffer)[1]
        return self.tables.at(state, (table // values, table % values))

    def _load(self, access: Access) -> Expr:
        view, stmt = access.view, access.step.stmt
        buffer = view.buffer
        if access.by is None:
            return unknown("an access without a layout")
        at, thread = self.coordinates(access.by), self.threads(access.shape)
        places = [self.tables.in_one(substitute(each, thread, at)) for each in view.at]
        if access.places is not None:
            places = [self.tables.place(each) for each in access.places]
        there = [self.tables.conditions(substitute(view.where, thread, at))]
        found = self.element(buffer, places)
        if isinstance(stmt, Copy) and stmt.edge is not None:
            if not buffer.dtype.holds(stmt.edge):
                return unknown(f"padding of {stmt.edge:g}, which is not a value of {buffer.dtype}")
            known = Known(self.flow, access.step.context, self.questions)
            left = buffer in self.before and not isinstance(found, Element)  # by a launch: it has bounds of its own
            there += bounds(self.tables, places, buffer.shape, known.holds, whole=left)
            for cond in reversed(there):
                found = chosen(cond, found, number(stmt.edge))
            return found
        return found if there[0] is algebra.TRUE else unknown("a view with a condition")

    def element(self, buffer: Buffer, places: Sequence[Index]) -> Expr:
        """The element of a tensor before the kernel, by its names and coordinates before `flattened_views`."""
        if buffer in self.before:
            return self.tables.over_tables(over_coordinates(self.before[buffer], {}, tuple(places)))
        if not self.through_views:
            return element(buffer.name, *places)
        return element_in_views(self.flow.replaced, buffer, places)

    def _read_shared(self, access: Access) -> Expr:
        sources = self.flow.sources(access)
        context = access.step.context
        known = [each for each in sources if each.moment is not None and each.writers is not None]
        lost = [
            each
            for each in sources
            if each not in known and not self.flow.impossible([*context, each.guard], algebra.TRUE)
        ]
        reaching = (*reversed(lost), *reversed(known))
        return found_by(self.tables, reaching, self._of_source, Known(self.flow, context, self.questions))

    def _alike_where_twice(self, write: Access, value: Expr) -> bool:
        """Whether the elements of a write to one cell hold one value."""
        assert write.places is not None
        first, cells = alike_columns(np.stack([place.table[write.active] for place in write.places]))
        if first.size == cells.size:
            return True
        tables = (self.tables.known[name][write.active] for name in self.tables.of(value))
        return all(np.array_equal(table, table[first[cells]]) for table in tables)

    def _of_source(self, source: ReachingWrite, inside: Callable[[Positions], Positions]) -> Expr:
        if source.moment is None or source.writers is None:
            return unknown(source.unknown or "nothing is written")
        step = source.moment.step
        wrote = next(a for a in self.flow.accesses.of(step) if a.mode == "write")
        if not self._alike_where_twice(wrote, self.written(step)):
            return unknown("threads that write one element of shared memory write different values")
        if self.thread in symbols(source.guard):
            return unknown("a write to shared memory under a condition on threads")
        return self.tables.at(replaced(self.written(step), source.moment.shift), inside(source.writers.writer))
