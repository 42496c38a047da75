"""Accumulators of matrix instructions: the contributions summed after any number of iterations.

For one arbitrary x, c(x) counts how often x was added; a claim about a set, for all x, is then quantifier-free. A loop
is summed by telescoping: runs [low(k), high(k)) with high(k) = low(k + 1) add up to [low(first), low(k)).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
from attrs import define, evolve, field, frozen

from argus.core import algebra
from argus.core.index import Cmp, Cond, Index
from argus.core.ir import Alloc, Assert, Buffer, Covers, Lit, Map, Mma, Reset, Stmt
from argus.core.layout import TV
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import equal_indices
from argus.core.proof.dataflow.telescoping import telescope_terms
from argus.core.proof.dataflow.timeline import Loop, Segment, Step, is_whole
from argus.core.proof.obligation import Obligation
from argus.core.proof.values.content import Bottom, Content, Data, Inside, Number, Top, uniform
from argus.core.proof.values.multiset_count import Multiset
from argus.core.proof.values.recognisers.products import Multiplication, Product, Term, one_sum, tally_of
from argus.core.walk import show, substitute, symbols


@frozen(eq=False)
class SumState:
    """A sum: how often x was added, and under which condition it was initialised.

    product: the first product; all have its record and bounds, and its factors are the two multiplied tensors if all
    products share them. count: c(x). valid: that the accumulator was initialised. terms: the summands of `count` if a
    product initialised the sum and all others were added to it; else empty.
    """

    product: Product
    count: Index
    valid: Cond
    terms: tuple[Term, ...] = ()


@frozen(eq=False)
class Zero:
    """Initialised to zero, nothing added."""


State = Bottom | Top | Zero | SumState


@define(eq=False)
class Accumulator:
    """The states of one accumulator tile. weights: whether softmax weights may be added without a rescale rule."""

    flow: Flow
    buffer: Buffer
    weights: bool = False
    _products: dict[Step, Product | str] = field(factory=dict[Step, "Product | str"], init=False)

    def events(self, segment: Segment) -> tuple[Step, ...]:
        """The steps of a segment that write, allocate or reset the tile."""
        return tuple(step for step in segment.steps if self._touches(step))

    def _touches(self, step: Step) -> bool:
        if isinstance(step.stmt, Alloc | Reset):
            return step.stmt.buffer is self.buffer
        return any(a.mode == "write" and a.view.buffer is self.buffer for a in self.flow.accesses.of(step))

    def operands(self, step: Step) -> tuple[Content, Content]:
        a, b, *_ = self.flow.accesses.of(step)
        return self.flow.read(a), self.flow.read(b)

    def product(self, step: Step) -> Product | str:
        """The product that one statement adds, or why it is unknown."""
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
        product = Multiplication(step.stmt, data[0], data[1]).product()
        if isinstance(product, Product) and product.weighed is not None and not self.weights:
            return f"a sum of {product.weighed.form} that is never rescaled has no rule in the verifier yet"
        return product

    # -- state -------------------------------------------------------------------------------------------

    def state(self, at: Step) -> State:
        """The tile's state just before a step."""
        state: State = Bottom()
        for segment in self.flow.timeline.segments[: at.segment]:
            state = self._through(state, segment)
        segment = self.flow.timeline.segments[at.segment]
        if segment.loop is not None and self.events(segment):
            state = self._at_head(state, segment, segment.loop)
        for step in self.events(segment):
            if step.position < at.position:
                state = self._after(state, step)
        return state

    def content(self, at: Step) -> Content:
        """The tile's content just before a step."""
        match self.state(at):
            case SumState(valid=valid) as held:
                value = _content(held) if self.flow.holds(at.context, valid) else Bottom()
            case Zero():
                value = Number(0.0)
            case Bottom() | Top() as other:
                value = other
        return uniform(self._shape(), value, algebra.TRUE)

    def _shape(self) -> tuple[int, int]:
        layout = self.buffer.layout
        assert isinstance(layout, TV)
        return layout.threads.size(), layout.values.size()

    def _through(self, state: State, segment: Segment) -> State:
        events = self.events(segment)
        if segment.loop is None:
            for step in events:
                state = self._after(state, step)
            return state
        if not events:
            return state
        head = self._at_head(state, segment, segment.loop)
        if not isinstance(head, SumState):
            return head
        loop = segment.loop
        end = {loop.symbol: algebra.add(loop.stmt.start, algebra.mul(loop.trips, loop.stmt.step))}
        return evolve(head, count=substitute(head.count, end), valid=substitute(head.valid, end), terms=())

    def _after(self, state: State, step: Step) -> State:
        stmt = step.stmt
        if isinstance(stmt, Alloc | Reset):
            return Bottom()
        if step.guard is not algebra.TRUE and not (isinstance(stmt, Mma) and stmt.init is algebra.FALSE):
            return Top("the accumulator is set in a branch")
        match stmt:
            case Map(target=target, elem=Lit(value=0.0)):
                return Zero() if is_whole(target) else Top("part of an accumulator is set to zero")
            case Mma(init=init):
                product = self.product(step)
                if isinstance(product, str):
                    return Top(product)
                return _added(state, product, step.guard, init)
            case _:
                return Top(f"`{type(stmt).__name__}` into an accumulator has no rule in the verifier yet")

    def _at_head(self, before: State, segment: Segment, loop: Loop) -> State:
        """The state at the start of iteration k, for every k."""
        events = self.events(segment)
        refusal = _irregular(events, loop)
        if refusal:
            return Top(refusal)
        products = [self.product(step) for step in events]
        reasons = [each for each in products if isinstance(each, str)]
        if reasons:
            return Top(reasons[0])
        known = [each for each in products if isinstance(each, Product)]
        unlike = one_sum(known)
        if unlike:
            return Top(unlike)
        closed = telescope_terms(_terms(events, known), loop)
        if isinstance(closed, str):
            return Top(closed)
        total = algebra.add(*(term.count for term in closed))
        first = evolve(_at_start(known[0], loop), factors=_common([each.factors for each in known]))
        stmt = events[0].stmt
        assert isinstance(stmt, Mma)
        return _entered(before, first, total, loop, resets=stmt.init is not algebra.FALSE)

    # -- obligations -------------------------------------------------------------------------------------

    def obligations(self) -> Iterator[Obligation]:
        """The tile is initialised before use (I38), keeps its tags (I2), and has the closed form over loops (I3)."""
        reference: Product | None = None
        for segment in self.flow.timeline.segments:
            events = self.events(segment)
            for step in events:
                if not isinstance(step.stmt, Mma) or step.stmt.init is algebra.TRUE:
                    reference = None
                product = self.product(step) if isinstance(step.stmt, Mma) else ""
                if isinstance(step.stmt, Mma) and isinstance(product, Product):
                    afresh = step.stmt.init is algebra.TRUE
                    reference = reference or (product if afresh else _at_start(product, segment.loop))
                    yield from self._keeps_record(step, product, reference)
                    yield self._is_set(step, step.stmt, step.stmt.init)
            if segment.loop is not None and events:
                yield from self._adds_up(events, segment.loop)
        for step in self.flow.timeline.steps:
            if not isinstance(step.stmt, Mma) and self._reads(step):
                yield self._is_set(step, step.stmt, algebra.FALSE)

    def _reads(self, step: Step) -> bool:
        if isinstance(step.stmt, Assert):
            return isinstance(step.stmt.claim, Covers) and step.stmt.claim.of.view.buffer is self.buffer
        return any(a.mode == "read" and a.view.buffer is self.buffer for a in self.flow.accesses.of(step))

    def _keeps_record(self, step: Step, product: Product, reference: Product) -> Iterator[Obligation]:
        assert isinstance(step.stmt, Mma)
        for name in dict.fromkeys((*product.record, *reference.record)):
            both = name in product.record and name in reference.record
            goal = equal_indices(product.record[name], reference.record[name]) if both else algebra.FALSE
            yield Obligation(
                "I2",
                f"each element of `{self.buffer.name}` sums products of one `{name}`",
                step.stmt,
                goal,
                step.context,
                compared=prod(self._shape()),
            )
        yield Obligation(
            "I2",
            f"each element of `{self.buffer.name}` is padding for all of its products or for none",
            step.stmt,
            _equal_bounds(product.inside, reference.inside),
            step.context,
        )

    def _is_set(self, step: Step, stmt: Stmt, init: Cond) -> Obligation:
        """The tile has been initialised on every path, or is initialised here."""
        if init is algebra.TRUE:
            return Obligation("I38", f"`{self.buffer.name}` is initialised here", stmt, init, step.context)
        what = f"`{self.buffer.name}` is initialised before it is {'added to' if isinstance(stmt, Mma) else 'used'}"
        advice = (
            f"set `{self.buffer.name}` to zero first, or `assume` that the loop that initialises it runs at least once"
        )
        match self.state(step):
            case Bottom():
                goal, reason = init, ""
            case Zero():
                goal, reason = algebra.TRUE, ""
            case SumState(valid=valid):
                goal, reason = algebra.any_of((valid, init)), ""
            case Top(reason=reason):
                goal = algebra.FALSE
        return Obligation("I38", what, stmt, goal, step.context, unknown=reason, help=advice)

    def _adds_up(self, events: Sequence[Step], loop: Loop) -> Iterator[Obligation]:
        """The induction step of the closed form: c(k) + what the body adds = c(k + step)."""
        products = [self.product(step) for step in events if isinstance(step.stmt, Mma)]
        known = [each for each in products if isinstance(each, Product)]
        first = events[0].stmt
        if len(known) != len(events) or (isinstance(first, Mma) and first.init is algebra.TRUE):
            return
        terms = _terms(events, known)
        closed = telescope_terms(terms, loop)
        if isinstance(closed, str):
            return
        now = algebra.add(*(term.count for term in closed))
        after = {loop.symbol: algebra.add(algebra.sym(loop.symbol), loop.stmt.step)}
        added = algebra.add(*(term.count for term in terms))
        goal = algebra.eq(algebra.add(now, added), substitute(now, after))
        what = f"the sum in `{self.buffer.name}` after {loop.symbol.name} iterations has a closed form"
        yield Obligation("I3", what, events[0].stmt, goal, loop.facts)
        if any(loop.symbol in symbols(term.rest) for term in terms):
            none = algebra.eq(substitute(now, {loop.symbol: loop.stmt.start}), 0)
            what = f"`{self.buffer.name}` is empty before the first iteration of {loop.symbol.name}"
            yield Obligation("I3", what, events[0].stmt, none)


def _content(held: SumState) -> Data:
    """A sum as a value of the abstract domain."""
    product, name = held.product, held.product.contracted
    sets = {name: _tally(held)}
    form, root = (f"sum over {name} of {what}" for what in (product.form, product.root))
    return Data(product.record, product.inside, 0.0, sets, form, root=root, factors=product.factors)


def _tally(held: SumState) -> Multiset:
    """The multiset of a sum: runs where the terms are known, else c(x)."""
    return tally_of(held.terms) if held.terms else Multiset((), held.count)


def _single(content: Content) -> Data | str:
    """The value of an operand, or why it has no single one."""
    for piece in content:
        if isinstance(piece.value, Bottom):
            return "an operand is not written, or still in flight"
        if isinstance(piece.value, Top):
            return piece.value.reason
        if isinstance(piece.value, Number):
            return "an operand is a literal"
    if len(content) != 1 or content[0].guard is not algebra.TRUE or not bool(np.all(content[0].mask)):
        return "an operand whose content differs from case to case"
    value = content[0].value
    assert isinstance(value, Data)
    return value


def _common(factors: Sequence[tuple[Buffer, ...]]) -> tuple[Buffer, ...]:
    """The tensors multiplied by all products; empty if they differ."""
    return factors[0] if all(each == factors[0] for each in factors) else ()


def _combined(summed: Product, other: Product) -> Product:
    """The product that describes a sum after another product is added."""
    return evolve(summed, factors=_common([summed.factors, other.factors]))


def _first_trip(init: Cond, loop: Loop | None) -> bool:
    """Whether the condition is that this is the first iteration."""
    return loop is not None and isinstance(init, Cmp) and init is algebra.eq(algebra.sym(loop.symbol), loop.stmt.start)


def _at_start(product: Product, loop: Loop | None) -> Product:
    if loop is None:
        return product
    start = {loop.symbol: loop.stmt.start}
    record = {name: sep.shifted(start) for name, sep in product.record.items()}
    return evolve(product, record=record, inside=tuple(bound.shifted(start) for bound in product.inside))


def _equal_bounds(one: Sequence[Inside], two: Sequence[Inside]) -> Cond:
    if len(one) != len(two) or any(not a.same_bound(b) for a, b in zip(one, two, strict=True)):
        return algebra.FALSE
    return algebra.all_of(equal_indices(a.coordinate, b.coordinate) for a, b in zip(one, two, strict=True))


def _terms(events: Sequence[Step], products: Sequence[Product]) -> list[Term]:
    """The terms that the steps add, each under its guard."""
    pairs = zip(events, products, strict=True)
    return [evolve(t, rest=algebra.all_of((t.rest, step.guard))) for step, product in pairs for t in product.terms]


def _irregular(events: Sequence[Step], loop: Loop) -> str:
    """Why a loop that writes the tile is not a plain sum, initialised at most by the first step of iteration one."""
    for place, step in enumerate(events):
        if not isinstance(step.stmt, Mma):
            return "an accumulator that is assigned inside the loop that accumulates into it"
        init = step.stmt.init
        if init is algebra.FALSE:
            continue
        if place > 0 or not _first_trip(init, loop):
            return f"an accumulator that is reset in a loop when {show(init)}"
        if step.guard is not algebra.TRUE:
            return "the accumulator is set in a branch"
    return ""


def _entered(before: State, first: Product, total: Index, loop: Loop, *, resets: bool) -> State:
    """The state after the iterations before k, whose contributions `total` counts.

    resets: the first iteration discards the previous sum; before it, the previous sum is still there.
    """
    fresh = algebra.eq(algebra.sym(loop.symbol), loop.stmt.start) if resets else algebra.FALSE
    summed = SumState(first, total, algebra.negate(fresh) if resets else algebra.TRUE)
    match before:
        case Zero():
            return evolve(summed, valid=algebra.TRUE)
        case SumState(product=product) if one_sum((product, first)):
            return Top(one_sum((product, first)))
        case SumState(count=count, valid=valid):
            carried = algebra.pick(fresh, count, total) if resets else algebra.add(count, total)
            set_before = algebra.any_of((valid, algebra.negate(fresh))) if resets else valid
            same = _combined(before.product, first)
            return evolve(before, product=same, count=carried, valid=set_before, terms=())
        case Bottom():
            return summed if resets else before
        case Top():
            return before


def _added(state: State, product: Product, guard: Cond, init: Cond) -> State:
    """The state after one more product; the previous sum counts unless it is reset."""
    terms = [evolve(t, rest=algebra.all_of((t.rest, guard))) for t in product.terms]
    added = algebra.add(*(term.count for term in terms)) if terms else algebra.const(0)
    alone = SumState(product, added, init, tuple(terms))
    if init is algebra.TRUE:
        return alone
    match state:
        case Zero():
            return evolve(alone, valid=algebra.TRUE)
        case SumState(product=first) if one_sum((first, product)):
            return Top(one_sum((first, product)))
        case SumState(count=count, valid=valid, terms=before):
            previous = algebra.pick(init, 0, count)
            both = (*before, *terms) if before and init is algebra.FALSE else ()
            set_now = algebra.any_of((valid, init))
            same = _combined(state.product, product)
            return evolve(state, product=same, count=algebra.add(previous, added), valid=set_now, terms=both)
        case Bottom():
            return state if init is algebra.FALSE else alone
        case Top():
            return state
