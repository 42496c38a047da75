"""Order of accumulation (`assert_order`): the contributions of a product precede those of every later product.

Within a loop it is enough to compare consecutive products, since a range of contributions is never of negative length;
between segments of the program every pair is compared, since a loop between them may run zero iterations. A claim
inside a loop is about all products of earlier iterations, so also about those that follow it in the body.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

from attrs import define, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Alloc, Assert, Buffer, Lit, Map, Mma, Reset, Stmt, TagOf
from argus.core.proof.dataflow.timeline import Loop, Segment, Shift, Step, is_whole
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.values.content import Data, content_error
from argus.core.proof.values.products import Multiplication, Term
from argus.core.proof.values.value_flow import ValueFlow
from argus.core.walk import substitute


@frozen(eq=False)
class _Added:
    """The contributions of one step in the iteration given by `shift`, under the condition `exists`."""

    step: Step
    terms: tuple[Term, ...]
    shift: Shift
    exists: tuple[Cond, ...]

    @property
    def low(self) -> tuple[Index, ...]:
        return tuple(substitute(term.low, self.shift) for term in self.terms)

    @property
    def high(self) -> tuple[Index, ...]:
        return tuple(substitute(term.high, self.shift) for term in self.terms)


@define(eq=False)
class _Sum:
    """The products that are added to one tile."""

    flow: ValueFlow
    buffer: Buffer
    _terms: dict[Step, tuple[str, tuple[Term, ...]] | str] = field(
        factory=dict[Step, "tuple[str, tuple[Term, ...]] | str"], init=False
    )

    def products(self, segment: Segment) -> Iterator[Step]:
        """The statements of a segment that add to the tile."""
        return (s for s in segment.steps if isinstance(s.stmt, Mma) and s.stmt.target.buffer is self.buffer)

    def written_otherwise(self) -> bool:
        """Whether something else than products, and a number, is written to the tile."""
        return any(
            access.mode == "write" and access.view.buffer is self.buffer and not _is_start(step.stmt)
            for step in self.flow.timeline.steps
            for access in self.flow.accesses.of(step)
        )

    def terms(self, step: Step) -> tuple[str, tuple[Term, ...]] | str:
        """The name that a product sums over, and the runs of numbers; or why it has none."""
        if step not in self._terms:
            self._terms[step] = self._terms_of(step)
        return self._terms[step]

    def _terms_of(self, step: Step) -> tuple[str, tuple[Term, ...]] | str:
        assert isinstance(step.stmt, Mma)
        found: list[Data] = []
        for access in self.flow.accesses.of(step)[:2]:
            content = self.flow.read(access)
            value = content[0].value
            if len(content) != 1 or content[0].guard is not algebra.TRUE or not isinstance(value, Data):
                return content_error(value) or "an operand that differs from case to case"
            found.append(value)
        return Multiplication(step.stmt, found[0], found[1]).terms()


def _is_start(stmt: Stmt) -> bool:
    return isinstance(stmt, Mma | Alloc | Reset) or (isinstance(stmt, Map) and isinstance(stmt.elem, Lit))


def sum_order_obligations(flow: ValueFlow, step: Step, stmt: Assert, of: TagOf) -> Iterator[Obligation]:
    """I39: the products that are added to a tile before a claim come in ascending order of the name."""
    what = f"`{of.view.buffer.name}` sums over `{of.name}` in order"
    accumulator = _Sum(flow, of.view.buffer)
    reason = _irregular(accumulator, step, of)
    if reason:
        yield Obligation("I39", what, stmt, algebra.FALSE, step.context, unknown=reason)
        return
    pairs = [*_within_segments(accumulator, step), *_between_segments(accumulator, step)]
    yield Obligation("I39", what, stmt, algebra.TRUE, step.context)
    for before, after in pairs:
        goal = algebra.all_of(algebra.le(high, low) for high in before.high for low in after.low)
        context = (*before.exists, *after.exists)
        compared = accumulator.flow.accesses.of(after.step)[-1].shape
        yield Obligation(
            "I39",
            what,
            stmt,
            goal,
            context,
            minimise=minimisation_order(goal),
            compared=compared[0] * compared[1],
            help=f"let the loop visit the tiles of `{of.name}` in ascending order",
        )


def _irregular(accumulator: _Sum, at: Step, of: TagOf) -> str:
    """Why the statements before a claim are not a sequence of unconditional products over the component; or empty."""
    if not is_whole(of.view):
        return "an order of part of a register tile"
    if accumulator.written_otherwise():
        return "a tile to which more than products is written"
    for step in _before(accumulator, at):
        terms = accumulator.terms(step)
        if isinstance(terms, str):
            return terms
        if terms[0] != of.name:
            return f"the sum is over `{terms[0]}`"
        if step.guard is not algebra.TRUE:
            return "a product in a branch"
    return "" if any(True for _ in _before(accumulator, at)) else "no sum of products is known there"


def _before(accumulator: _Sum, at: Step) -> Iterator[Step]:
    """The products that may precede a claim: for one in a loop all of the body, which an earlier iteration has run."""
    for segment in accumulator.flow.timeline.segments[: at.segment + 1]:
        whole = segment.loop is not None and segment.loop is at.loop
        yield from (step for step in accumulator.products(segment) if whole or step.position < at.position)


def _added(accumulator: _Sum, step: Step, shift: Shift, exists: tuple[Cond, ...]) -> _Added:
    terms = accumulator.terms(step)
    assert not isinstance(terms, str)
    return _Added(step, terms[1], shift, exists)


def _steps_of(accumulator: _Sum, segment: Segment, at: Step) -> list[Step]:
    return [step for step in _before(accumulator, at) if step.segment == _number(accumulator, segment)]


def _number(accumulator: _Sum, segment: Segment) -> int:
    return accumulator.flow.timeline.segments.index(segment)


def _within_segments(accumulator: _Sum, at: Step) -> Iterator[tuple[_Added, _Added]]:
    for segment in accumulator.flow.timeline.segments[: at.segment + 1]:
        steps, loop = _steps_of(accumulator, segment, at), segment.loop
        facts = () if loop is None else loop.facts
        for one, two in pairwise(steps):
            yield _added(accumulator, one, {}, facts), _added(accumulator, two, {}, (*facts, *_returns(at, two, {})))
        if loop is not None and steps:
            context = (*facts, loop.has_earlier(1), *_returns(at, steps[0], {}))
            yield _added(accumulator, steps[-1], loop.back(1), context), _added(accumulator, steps[0], {}, context)


def _between_segments(accumulator: _Sum, at: Step) -> Iterator[tuple[_Added, _Added]]:
    """The last contributions of each segment with the first of each later segment."""
    parts = [(s.loop, _steps_of(accumulator, s, at)) for s in accumulator.flow.timeline.segments[: at.segment + 1]]
    for (one, before), (two, after) in combinations([part for part in parts if part[1]], 2):
        last = {} if one is None else one.last(0)
        first = {} if two is None else {two.symbol: two.stmt.start}
        yield (
            _added(accumulator, before[-1], last, _runs(one)),
            _added(accumulator, after[0], first, (*_runs(two), *_returns(at, after[0], first))),
        )


def _returns(at: Step, product: Step, shift: Shift) -> tuple[Cond, ...]:
    """For a product that follows a claim in the body of its loop: one more iteration comes to the claim.

    shift: selects the product's iteration.
    """
    loop = at.loop
    if loop is None or product.segment != at.segment or product.position < at.position:
        return ()
    return tuple(substitute(substitute(fact, loop.back(-1)), shift) for fact in loop.facts)


def _runs(loop: Loop | None) -> tuple[Cond, ...]:
    return () if loop is None else (algebra.le(1, loop.trips),)
