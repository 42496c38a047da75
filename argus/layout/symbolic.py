"""Operations on symbolic layouts, with their side conditions proved by a solver or listed.

>>> from argus.layout.symbolic import SymbolicLayout, symbols, under
>>> M, K = symbols("M K")
>>> result = under(M % 128 == 0).logical_divide(SymbolicLayout((M, K), (K, 1)), (128, 64))
>>> print(result)
((128,M//128),(64,K//64)):((K,128*K),(1,64))
  M % 128 == 0: proved by normal form (tiles fill the extent without a rest)
  K % 64 == 0: listed, fails at K=1, M=128 (tiles fill the extent without a rest)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.index_text import show
from argus.core.layout import coalesce, complement, compose, divide, inverse, values
from argus.core.layout.faults import LayoutError
from argus.core.layout.inttuple import IntTuple
from argus.core.layout.symbolic import (
    AnyLayout,
    Claim,
    Conditional,
    Operations,
    Size,
    SizeTree,
    SymbolicLayout,
    SymbolicTiler,
    symbols,
    to_symbolic,
)
from argus.core.layout.symbolic.facts import conjuncts, divisors
from argus.core.layout.symbolic.sizes import condition_of, node_of
from argus.core.layout.values import Layout
from argus.core.query import Budget
from argus.core.walk import evaluate
from argus.core.walk import symbols as symbols_of
from argus.layout.conditions import (
    Chain,
    SideCondition,
    Values,
    check_condition,
    prover_of,
    unique_names,
    values_text,
)
from argus.solvers.base import Solver
from argus.solvers.choice import resolve

__all__ = [
    "Assumptions",
    "Claim",
    "Decision",
    "Equality",
    "SideCondition",
    "Size",
    "SymbolicLayout",
    "SymbolicResult",
    "symbols",
    "under",
]

SECONDS = 5.0
"""The default solver budget of one operation, in seconds of an idle core."""


@frozen
class SymbolicResult:
    """A layout that is exact wherever the assumptions and the listed conditions hold."""

    layout: SymbolicLayout
    conditions: tuple[SideCondition, ...]

    @property
    def listed(self) -> tuple[SideCondition, ...]:
        """The conditions that the user must ensure; empty where all are proved."""
        return tuple(condition for condition in self.conditions if condition.standing == "listed")

    def __str__(self) -> str:
        return "\n".join([str(self.layout), *(f"  {condition}" for condition in self.conditions)])


@frozen
class Equality:
    """Whether two layouts are equal as functions.

    holds: True if for all sizes, False if `counterexample` shows otherwise, None if not known (see `note`).
    """

    holds: bool | None
    condition: str
    by: str = ""
    counterexample: Values | None = None
    note: str = ""


@frozen
class Decision:
    """Whether a claim holds for all values of its symbols that the assumptions allow.

    holds: True if proved `by` (normal form or a solver); False if `counterexample` has values, put into the claim and
    evaluated, at which it fails; None if not known (see `note`).
    """

    holds: bool | None
    claim: str
    by: str = ""
    counterexample: Values | None = None
    note: str = ""

    def __str__(self) -> str:
        if self.holds:
            return f"proved by {self.by}: {self.claim}"
        if self.counterexample is not None:
            return f"refuted at {values_text(self.counterexample)}: {self.claim}"
        return f"not decided, {self.note}: {self.claim}"


@frozen
class Assumptions:
    """Assumptions about symbols; the methods are the operations of `argus.layout` under these assumptions.

    budget: of one query to the solver. seconds: solver steps for one operation, as seconds of an idle core.

    Each operation returns a result with its conditions, proved or listed. It raises LayoutError E811 where the form of
    the result depends on sizes that the assumptions do not determine, where a condition is false for all sizes that
    they allow, and where they contradict each other. Other error codes are those of the operation on numbers.
    """

    facts: tuple[Cond, ...]
    solver: str | Solver | None = None
    budget: Budget | None = None
    seconds: float = SECONDS

    def make_layout(self, *modes: AnyLayout) -> SymbolicResult:
        return self._run(lambda on: on.make_layout(*modes), values.make_layout, *modes)

    def coalesce(self, layout: AnyLayout) -> SymbolicResult:
        return self._run(lambda on: on.coalesce(layout), coalesce.coalesce, layout)

    def composition(self, a: AnyLayout, b: SymbolicTiler) -> SymbolicResult:
        return self._run(lambda on: on.composition(a, b), compose.composition, a, b)

    def complement(self, layout: AnyLayout, cotarget: SizeTree = 1) -> SymbolicResult:
        return self._run(lambda on: on.complement(layout, cotarget), complement.complement, layout, cotarget)

    def right_inverse(self, layout: AnyLayout) -> SymbolicResult:
        return self._run(lambda on: on.right_inverse(layout), inverse.right_inverse, layout)

    def left_inverse(self, layout: AnyLayout) -> SymbolicResult:
        return self._run(lambda on: on.left_inverse(layout), inverse.left_inverse, layout)

    def logical_divide(self, layout: AnyLayout, tiler: SymbolicTiler) -> SymbolicResult:
        return self._run(lambda on: on.logical_divide(layout, tiler), divide.logical_divide, layout, tiler)

    def zipped_divide(self, layout: AnyLayout, tiler: SymbolicTiler) -> SymbolicResult:
        return self._run(lambda on: on.zipped_divide(layout, tiler), divide.zipped_divide, layout, tiler)

    def tiled_divide(self, layout: AnyLayout, tiler: SymbolicTiler) -> SymbolicResult:
        return self._run(lambda on: on.tiled_divide(layout, tiler), divide.tiled_divide, layout, tiler)

    def flat_divide(self, layout: AnyLayout, tiler: SymbolicTiler) -> SymbolicResult:
        return self._run(lambda on: on.flat_divide(layout, tiler), divide.flat_divide, layout, tiler)

    def logical_product(self, block: AnyLayout, tiler: SymbolicTiler) -> SymbolicResult:
        return self._run(lambda on: on.logical_product(block, tiler), divide.logical_product, block, tiler)

    def zipped_product(self, block: AnyLayout, tiler: SymbolicTiler) -> SymbolicResult:
        return self._run(lambda on: on.zipped_product(block, tiler), divide.zipped_product, block, tiler)

    def tiled_product(self, block: AnyLayout, tiler: SymbolicTiler) -> SymbolicResult:
        return self._run(lambda on: on.tiled_product(block, tiler), divide.tiled_product, block, tiler)

    def flat_product(self, block: AnyLayout, tiler: SymbolicTiler) -> SymbolicResult:
        return self._run(lambda on: on.flat_product(block, tiler), divide.flat_product, block, tiler)

    def blocked_product(self, block: AnyLayout, tiler: AnyLayout) -> SymbolicResult:
        return self._run(lambda on: on.blocked_product(block, tiler), divide.blocked_product, block, tiler)

    def raked_product(self, block: AnyLayout, tiler: AnyLayout) -> SymbolicResult:
        return self._run(lambda on: on.raked_product(block, tiler), divide.raked_product, block, tiler)

    def tile_to_shape(self, block: AnyLayout, target: SizeTree, order: IntTuple | None = None) -> SymbolicResult:
        return self._run(lambda on: on.tile_to_shape(block, target, order), divide.tile_to_shape, block, target, order)

    def functionally_equal(self, a: AnyLayout, b: AnyLayout) -> Equality:
        """Whether the sizes and all images are equal, wherever the assumptions hold and both are layouts."""
        chain, known = self._begin((a, b))
        extents = [extent for layout in (to_symbolic(a), to_symbolic(b)) for extent, _ in layout.flat_modes]
        facts = conjuncts([*self.facts, *(algebra.le(1, extent) for extent in extents)])
        chain.refuse_contradictions(facts, known)
        try:
            condition = Operations(facts, chain).functionally_equal(a, b)
        except LayoutError as undecided:
            condition, note = algebra.FALSE, undecided.diagnostic.message
        else:
            note = "no values were found at which they differ"
            by = prover_of(chain, facts, condition)
            if by:
                return Equality(True, show(condition), by)
        for found in chain.valuations((*facts, algebra.negate(condition)), known):
            if not _same(_at(a, found, known), _at(b, found, known)):
                return Equality(False, show(condition), counterexample=found)
        return Equality(
            None, show(condition), note=note if chain.limits_reached() in note else f"{note}; {chain.limits_reached()}"
        )

    def decide(self, claim: Claim | bool) -> Decision:
        """Prove or refute a claim about sizes, such as a law of your own: `a(i) == b(i)` for symbolic layouts.

        Every divisor in the claim is assumed to be positive. Raises LayoutError: E801 for what is no claim, E811 if the
        assumptions contradict each other.
        """
        goal = condition_of(claim)
        facts = (*[algebra.le(1, divisor) for divisor in divisors(goal)], *self.facts)
        known = unique_names(symbols_of(*facts, goal))
        chain = Chain.of(resolve(self.solver), self.budget or Budget(), self.seconds)
        chain.refuse_contradictions(facts, known)
        text = show(goal)
        by = prover_of(chain, facts, goal)
        if by:
            return Decision(True, text, by)
        for found in chain.valuations((*facts, algebra.negate(goal)), known):
            if not evaluate(goal, {symbol: found[symbol.name] for symbol in known}):
                return Decision(False, text, counterexample=found)
        return Decision(None, text, note=chain.limits_reached() or "no values were found at which it fails")

    def _run(
        self, perform: Callable[[Operations], Conditional], concrete: Callable[..., Any], *operands: object
    ) -> SymbolicResult:
        chain, known = self._begin(operands)
        made = perform(Operations(self.facts, chain))
        judged: list[SideCondition] = []
        hypotheses = self.facts

        def replays(found: Values) -> bool:
            """Whether the operation on numbers gives another result at these values, or raises."""
            return _differs(made.layout, lambda: concrete(*(_at(each, found, known) for each in operands)), found)

        for condition in made.conditions:
            judged.append(check_condition(chain, hypotheses, condition, known, replays))
            hypotheses = (*hypotheses, condition.formula)
        return SymbolicResult(made.layout, tuple(judged))

    def _begin(self, operands: tuple[object, ...]) -> tuple[Chain, list[Symbol]]:
        known = unique_names(symbols_of(*self.facts, *_nodes(operands)))
        chain = Chain.of(resolve(self.solver), self.budget or Budget(), self.seconds)
        chain.refuse_contradictions(self.facts, known)
        return chain, known


def under(
    *facts: Claim | bool, solver: str | Solver | None = None, budget: Budget | None = None, seconds: float = SECONDS
) -> Assumptions:
    """The layout operations under these facts about symbols: `under(M % 128 == 0, K >= 64)`.

    solver, budget: as for `verify`. seconds: the solver budget of each operation, in seconds of an idle core, counted
    in steps (`STEPS_PER_SECOND`). Conditions not decided by then are listed, or raise E811 where the form of the result
    depends on them. Every divisor in the facts is assumed to be positive. Raises LayoutError (E801) for a fact that is
    neither a claim nor a bool.
    """
    given = [condition_of(fact) for fact in facts]
    positive = [algebra.le(1, divisor) for fact in given for divisor in divisors(fact)]
    return Assumptions(
        tuple(dict.fromkeys(c for c in (*positive, *given) if c is not algebra.TRUE)), solver, budget, seconds
    )


def _differs(layout: SymbolicLayout, concrete: Callable[[], Layout], found: Values) -> bool:
    try:
        wanted = concrete()
    except LayoutError as refused:
        return refused.code != "E810"
    try:
        return not _same(layout.substitute(found), wanted)
    except LayoutError:
        return True


def _same(a: Layout, b: Layout) -> bool:
    return coalesce.coalesce(a) == coalesce.coalesce(b)


def _at(operand: object, found: Values, known: list[Symbol]) -> Any:  # noqa: ANN401 reason: any operand
    """The operand at some values of the symbols."""
    if isinstance(operand, SymbolicLayout):
        return operand.substitute(found)
    if operand is None or isinstance(operand, Layout):
        return operand
    if isinstance(operand, tuple):
        return tuple(_at(part, found, known) for part in cast(tuple[object, ...], operand))
    return int(cast(int, evaluate(node_of(operand), {symbol: found[symbol.name] for symbol in known})))


def _nodes(operands: tuple[object, ...]) -> Iterator[Index]:
    for operand in operands:
        if isinstance(operand, SymbolicLayout):
            for mode in operand.flat_modes:
                yield from mode
        elif isinstance(operand, tuple):
            yield from _nodes(cast(tuple[object, ...], operand))
        elif operand is not None and not isinstance(operand, Layout):
            yield node_of(operand)
