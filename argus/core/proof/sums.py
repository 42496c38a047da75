"""Accumulators: what has been summed after any number of iterations, by one arbitrary contribution.

Fix x. c(x) counts how often x was added; the claim about a set, for all x, is then quantifier-free. A loop is
summed by telescoping: runs [low(k), high(k)) with high(k) = low(k + 1) add up to [low(first), low(k)).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import define, evolve, field, frozen

from argus.core import algebra
from argus.core.index import Cmp, Cond, Index
from argus.core.ir import Buffer, Lit, Map, Mma
from argus.core.layout import TV
from argus.core.proof.content import Bottom, Content, Data, Inside, Top, everywhere
from argus.core.proof.flow import Flow
from argus.core.proof.obligation import Obligation
from argus.core.proof.products import Multiplication, Product, Term
from argus.core.proof.separate import Sep, same
from argus.core.proof.timeline import Loop, Segment, Step
from argus.core.walk import show, substitute, symbols


@frozen(eq=False)
class Held:
    """A sum: its elements' record and bounds, and how often x went into it."""

    record: dict[str, Sep]
    inside: tuple[Inside, ...]
    contracted: str
    count: Index


@frozen(eq=False)
class Zero:
    """Set to zero, nothing added."""


State = Bottom | Top | Zero | Held


@define(eq=False)
class Accumulator:
    """The history of one register tile that matrix instructions add to."""

    flow: Flow
    buffer: Buffer
    _products: dict[Step, Product | str] = field(factory=dict[Step, "Product | str"], init=False)

    def events(self, segment: Segment) -> tuple[Step, ...]:
        """The steps of a segment that write the tile."""
        return tuple(
            step
            for step in segment.steps
            if any(a.mode == "write" and a.view.buffer is self.buffer for a in self.flow.accesses.of(step))
        )

    def operands(self, step: Step) -> tuple[Content, Content]:
        a, b, *_ = self.flow.accesses.of(step)
        return self.flow.read(a), self.flow.read(b)

    def product(self, step: Step) -> Product | str:
        """What one statement adds, or why it has no form."""
        if step not in self._products:
            self._products[step] = self._product(step)
        return self._products[step]

    def _product(self, step: Step) -> Product | str:
        assert isinstance(step.stmt, Mma)
        data: list[Data] = []
        for content in self.operands(step):
            value = _single(content)
            if isinstance(value, str):
                return value
            data.append(value)
        return Multiplication(step.stmt, data[0], data[1]).product()

    # -- state -------------------------------------------------------------------------------------------

    def state(self, at: Step) -> State:
        """What the tile holds just before a step."""
        state: State = Bottom()
        for segment in self.flow.timeline.segments[: at.segment]:
            state = self._through(state, segment)
        segment = self.flow.timeline.segments[at.segment]
        if segment.loop is not None and self.events(segment):
            state = self._at_head(state, segment, segment.loop)
        for step in self.events(segment):
            if step.position < at.position:
                state = self._after(state, step, segment.loop)
        return state

    def content(self, at: Step) -> Content:
        """The same, as the domain's value."""
        match self.state(at):
            case Held(record=record, inside=inside, contracted=name, count=count):
                value = Data(record, inside, 0.0, {name: count})
            case Zero():
                value = Top("zeros carry no record")
            case Bottom() | Top() as other:
                value = other
        return everywhere(self._shape(), value, algebra.TRUE)

    def _shape(self) -> tuple[int, int]:
        layout = self.buffer.layout
        assert isinstance(layout, TV)
        return layout.threads.size, layout.values.size

    def _through(self, state: State, segment: Segment) -> State:
        events = self.events(segment)
        if segment.loop is None:
            for step in events:
                state = self._after(state, step, None)
            return state
        if not events:
            return state
        head = self._at_head(state, segment, segment.loop)
        if not isinstance(head, Held):
            return head
        loop = segment.loop
        end = {loop.symbol: algebra.add(loop.stmt.start, algebra.mul(loop.trips, loop.stmt.step))}
        return evolve(head, count=substitute(head.count, end))

    def _after(self, state: State, step: Step, loop: Loop | None) -> State:
        stmt = step.stmt
        if step.guard is not algebra.TRUE and not (isinstance(stmt, Mma) and stmt.init is algebra.FALSE):
            return Top("the accumulator is set in a branch")
        match stmt:
            case Map(elem=Lit(value=0.0)):
                return Zero()
            case Mma(init=init):
                product = self.product(step)
                if isinstance(product, str):
                    return Top(product)
                if loop is None and init is algebra.TRUE:
                    state = Zero()
                elif init is not algebra.FALSE and not _first_trip(init, loop):
                    return Top(f"an accumulator that is reset when {show(init)}")
                elif init is not algebra.FALSE and isinstance(state, Bottom):
                    state = Zero()
                return _added(state, product, step.guard)
            case _:
                return Top(f"`{type(stmt).__name__}` into an accumulator has no rule yet in the verifier")

    def _at_head(self, before: State, segment: Segment, loop: Loop) -> State:
        """The state at the start of iteration k, for every k."""
        events = self.events(segment)
        first = events[0].stmt
        if isinstance(first, Mma) and _first_trip(first.init, loop):
            before = Zero()
        elif isinstance(first, Mma) and first.init is not algebra.FALSE:
            return Top(f"an accumulator that is reset when {show(first.init)}")
        if isinstance(first, Mma) and first.init is not algebra.FALSE and events[0].guard is not algebra.TRUE:
            return Top("the accumulator is set in a branch")
        terms: list[Term] = []
        product: Product | str = ""
        for step in events:
            if not isinstance(step.stmt, Mma):
                return Top("an accumulator that is assigned inside the loop that sums it")
            if step is not events[0] and step.stmt.init is not algebra.FALSE:
                return Top("an accumulator that is reset in the middle of a loop")
            product = self.product(step)
            if isinstance(product, str):
                return Top(product)
            terms += [evolve(t, rest=algebra.all_of((t.rest, step.guard))) for t in product.terms]
        closed = telescoped(terms, loop)
        if isinstance(closed, str):
            return Top(closed)
        assert isinstance(product, Product)
        start = {loop.symbol: loop.stmt.start}
        record = {name: sep.shifted(start) for name, sep in product.record.items()}
        inside = tuple(i.shifted(start) for i in product.inside)
        total = algebra.add(*(term.count for term in closed))
        if isinstance(before, Held):
            return evolve(before, count=algebra.add(before.count, total))
        if isinstance(before, Zero):
            assert product.contracted is not None
            return Held(record, inside, product.contracted, total)
        return before

    # -- obligations -------------------------------------------------------------------------------------

    def obligations(self) -> Iterator[Obligation]:
        """That the tile is set before it is added to, that its elements keep their record, that loops add up."""
        reference: Product | None = None
        for segment in self.flow.timeline.segments:
            events = self.events(segment)
            for step in events:
                if isinstance(step.stmt, Mma):
                    product = self.product(step)
                    if isinstance(product, str):
                        continue
                    reference = reference or _at_start(product, segment.loop)
                    yield from self._keeps_record(step, product, reference)
                    yield from self._is_set(step, step.stmt)
            if segment.loop is not None and events:
                yield from self._adds_up(events, segment.loop)
                yield from self._runs(events[0], segment.loop)

    def _runs(self, first: Step, loop: Loop) -> Iterator[Obligation]:
        """A tile that the first iteration sets is set only if there is a first iteration."""
        assert isinstance(first.stmt, Mma | Map)
        if not isinstance(first.stmt, Mma) or not _first_trip(first.stmt.init, loop):
            return
        if not isinstance(self._before(first), Zero):
            yield Obligation(
                "I38",
                f"the loop that sets `{self.buffer.name}` runs at least once",
                first.stmt,
                algebra.le(1, loop.trips),
                help=f"`assume` a trip, or set `{self.buffer.name}` to zero before the loop",
            )

    def _keeps_record(self, step: Step, product: Product, reference: Product) -> Iterator[Obligation]:
        assert isinstance(step.stmt, Mma)
        for name, sep in product.record.items():
            goal = same(sep, reference.record[name]) if name in reference.record else algebra.FALSE
            yield Obligation(
                "I2",
                f"each element of `{self.buffer.name}` sums products of one `{name}`",
                step.stmt,
                goal,
                step.context,
                compared=sep.table.size,
            )
        yield Obligation(
            "I2",
            f"each element of `{self.buffer.name}` is padding for all of its products or for none",
            step.stmt,
            _bounded_alike(product.inside, reference.inside),
            step.context,
        )

    def _is_set(self, step: Step, stmt: Mma) -> Iterator[Obligation]:
        what = f"`{self.buffer.name}` is set before it is added to"
        state = self._before(step)
        set_here = stmt.init is algebra.TRUE or _first_trip(stmt.init, step.loop)
        if set_here or isinstance(state, Zero | Held):
            yield Obligation("I38", what, stmt, algebra.TRUE, step.context)
        elif isinstance(state, Bottom):
            yield Obligation("I38", what, stmt, algebra.FALSE, step.context)
        else:
            yield Obligation("I38", what, stmt, algebra.FALSE, step.context, unknown=state.reason)

    def _before(self, step: Step) -> State:
        """The state before a step of a loop's first trip, or before a straight step."""
        state: State = Bottom()
        for segment in self.flow.timeline.segments[: step.segment]:
            state = self._through(state, segment)
        for event in self.events(self.flow.timeline.segments[step.segment]):
            if event.position < step.position:
                state = self._after(state, event, step.loop)
        return state

    def _adds_up(self, events: Sequence[Step], loop: Loop) -> Iterator[Obligation]:
        """The induction step of the closed form: c(k) + what the body adds = c(k + step)."""
        terms: list[Term] = []
        for step in events:
            product = self.product(step)
            if isinstance(product, str):
                return
            terms += [evolve(t, rest=algebra.all_of((t.rest, step.guard))) for t in product.terms]
        closed = telescoped(terms, loop)
        if isinstance(closed, str):
            return
        now = algebra.add(*(term.count for term in closed))
        after = {loop.symbol: algebra.add(algebra.sym(loop.symbol), loop.stmt.step)}
        added = algebra.add(*(term.count for term in terms))
        goal = algebra.eq(algebra.add(now, added), substitute(now, after))
        what = f"the sum in `{self.buffer.name}` after {loop.symbol.name} iterations has a closed form"
        yield Obligation("I3", what, events[0].stmt, goal, loop.facts)


def _single(content: Content) -> Data | str:
    """The one value of an operand, or what keeps it from being one."""
    for piece in content:
        if isinstance(piece.value, Bottom):
            return "an operand is not written, or still in flight"
        if isinstance(piece.value, Top):
            return piece.value.reason
    if len(content) != 1 or content[0].guard is not algebra.TRUE or not bool(np.all(content[0].mask)):
        return "an operand whose content differs from case to case"
    value = content[0].value
    assert isinstance(value, Data)
    return value


def _first_trip(init: Cond, loop: Loop | None) -> bool:
    """Whether the condition says: this is the first iteration."""
    return loop is not None and isinstance(init, Cmp) and init is algebra.eq(algebra.sym(loop.symbol), loop.stmt.start)


def _at_start(product: Product, loop: Loop | None) -> Product:
    if loop is None:
        return product
    start = {loop.symbol: loop.stmt.start}
    record = {name: sep.shifted(start) for name, sep in product.record.items()}
    return evolve(product, record=record, inside=tuple(bound.shifted(start) for bound in product.inside))


def _bounded_alike(one: Sequence[Inside], two: Sequence[Inside]) -> Cond:
    if len(one) != len(two) or any(a.extent is not b.extent for a, b in zip(one, two, strict=True)):
        return algebra.FALSE
    return algebra.all_of(same(a.coordinate, b.coordinate) for a, b in zip(one, two, strict=True))


def _added(state: State, product: Product, guard: Cond) -> State:
    terms = [evolve(t, rest=algebra.all_of((t.rest, guard))) for t in product.terms]
    added = algebra.add(*(term.count for term in terms)) if terms else algebra.const(0)
    match state:
        case Zero():
            assert product.contracted is not None
            return Held(product.record, product.inside, product.contracted, added)
        case Held():
            return evolve(state, count=algebra.add(state.count, added))
        case _:
            return state


def telescoped(terms: Sequence[Term], loop: Loop) -> tuple[Term, ...] | str:
    """The sum of the terms over all iterations before k, or why it has no closed form."""
    merged = _merge(list(terms))
    ahead = {loop.symbol: algebra.add(algebra.sym(loop.symbol), loop.stmt.step)}
    start = {loop.symbol: loop.stmt.start}
    closed: list[Term] = []
    for term in merged:
        if loop.symbol in symbols(term.rest):
            return f"contributions under a condition on `{loop.symbol.name}`"
        length = algebra.sub(term.high, term.low).range
        if length[0] is None or length[0] < 0:
            return "contributions of a run of unknown length"
        if substitute(term.low, ahead) is term.high:
            closed.append(evolve(term, low=substitute(term.low, start), high=term.low))
        elif substitute(term.high, ahead) is term.low:
            closed.append(evolve(term, low=term.high, high=substitute(term.high, start)))
        else:
            return "runs of contributions that do not follow each other from iteration to iteration"
    return tuple(closed)


def _merge(terms: list[Term]) -> list[Term]:
    """Adjacent runs joined."""
    merged: list[Term] = []
    for term in terms:
        for place, other in enumerate(merged):
            if other.times == term.times and other.rest is term.rest and other.high is term.low:
                merged[place] = evolve(other, high=term.high)
                break
            if other.times == term.times and other.rest is term.rest and term.high is other.low:
                merged[place] = evolve(other, low=term.low)
                break
        else:
            merged.append(term)
    return merged
