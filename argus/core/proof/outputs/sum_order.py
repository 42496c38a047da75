"""Order of accumulation (`assert_order`): the contributions of a product precede those of every later product.

Within a loop it is enough to compare consecutive products, since a range of contributions is never of negative length;
between segments of the program every pair is compared, since a loop between them may run zero iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Assert, Mma, TagOf
from argus.core.proof.dataflow.timeline import Loop, Segment, Shift, Step, is_whole
from argus.core.proof.obligation import Obligation, minimisation_order
from argus.core.proof.values.recognisers.products import Product, Term
from argus.core.proof.values.sums import Accumulator
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


def sum_order_obligations(
    accumulators: Sequence[Accumulator], step: Step, stmt: Assert, of: TagOf
) -> Iterator[Obligation]:
    what = f"`{of.view.buffer.name}` sums over `{of.name}` in order"
    accumulator = next((each for each in accumulators if each.buffer is of.view.buffer), None)
    reason = "no sum of products is known there" if accumulator is None else _irregular(accumulator, step, of)
    if accumulator is None or reason:
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


def _irregular(accumulator: Accumulator, at: Step, of: TagOf) -> str:
    """Why the statements before a claim are not a sequence of unconditional products over the component; or empty."""
    if not is_whole(of.view):
        return "an order of part of a register tile"
    if at.loop is not None:
        return "an order asserted inside a loop is not supported by the verifier yet"
    for step in _before(accumulator, at):
        product = accumulator.product(step)
        if isinstance(product, str):
            return product
        if product.contracted != of.name:
            return f"the sum is over `{product.contracted}`"
        if step.guard is not algebra.TRUE:
            return "a product in a branch"
        if any(not _nonnegative_length(term) for term in product.terms):
            return "a range of contributions of unknown length"
    return "" if any(True for _ in _before(accumulator, at)) else "no sum of products is known there"


def _nonnegative_length(term: Term) -> bool:
    low, _ = algebra.sub(term.high, term.low).range
    return low is not None and low >= 0


def _before(accumulator: Accumulator, at: Step) -> Iterator[Step]:
    for segment in accumulator.flow.timeline.segments[: at.segment + 1]:
        for step in accumulator.events(segment):
            if isinstance(step.stmt, Mma) and step.position < at.position:
                yield step


def _added(accumulator: Accumulator, step: Step, shift: Shift, exists: tuple[Cond, ...]) -> _Added:
    product = accumulator.product(step)
    assert isinstance(product, Product)
    return _Added(step, product.terms, shift, exists)


def _steps_of(accumulator: Accumulator, segment: Segment, at: Step) -> list[Step]:
    return [step for step in _before(accumulator, at) if step.segment == _number(accumulator, segment)]


def _number(accumulator: Accumulator, segment: Segment) -> int:
    return accumulator.flow.timeline.segments.index(segment)


def _within_segments(accumulator: Accumulator, at: Step) -> Iterator[tuple[_Added, _Added]]:
    for segment in accumulator.flow.timeline.segments[: at.segment + 1]:
        steps, loop = _steps_of(accumulator, segment, at), segment.loop
        facts = () if loop is None else loop.facts
        for one, two in pairwise(steps):
            yield _added(accumulator, one, {}, facts), _added(accumulator, two, {}, facts)
        if loop is not None and steps:
            context = (*facts, loop.has_earlier(1))
            yield _added(accumulator, steps[-1], loop.back(1), context), _added(accumulator, steps[0], {}, context)


def _between_segments(accumulator: Accumulator, at: Step) -> Iterator[tuple[_Added, _Added]]:
    """The last contributions of each segment with the first of each later segment."""
    parts = [(s.loop, _steps_of(accumulator, s, at)) for s in accumulator.flow.timeline.segments[: at.segment + 1]]
    for (one, before), (two, after) in combinations([part for part in parts if part[1]], 2):
        last = {} if one is None else one.last(0)
        first = {} if two is None else {two.symbol: two.stmt.start}
        yield (
            _added(accumulator, before[-1], last, _runs(one)),
            _added(accumulator, after[0], first, _runs(two)),
        )


def _runs(loop: Loop | None) -> tuple[Cond, ...]:
    return () if loop is None else (algebra.le(1, loop.trips),)
