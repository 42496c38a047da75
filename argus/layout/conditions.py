"""Side conditions of symbolic layouts: proved by normal forms or a solver, or listed with values at which they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from attrs import define, evolve, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Symbol
from argus.core.index_text import show
from argus.core.layout.faults import LayoutError
from argus.core.layout.symbolic import Condition
from argus.core.layout.symbolic.facts import facts_from
from argus.core.query import STEPS_PER_SECOND, Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.core.walk import symbols as symbols_of
from argus.solvers.base import Capabilities, Solver
from argus.solvers.session.session import Session

_TRIES = 8
_NORMAL_FORM = "normal form"
_SHARE = 0.5
_LEAST = STEPS_PER_SECOND // 50
Values = Mapping[str, int]


@frozen
class SideCondition:
    """A condition for a result to be exact, given the assumptions and the conditions listed before it.

    text, reason: the formula, and why it is needed. standing: "proved" by `by` (normal form or a solver), or "listed".
    counterexample: for a listed condition, values that the assumptions allow at which it fails and the operation on
    numbers gives another result or raises; None where none was found, and `note` says what is known.
    """

    text: str
    reason: str
    standing: Literal["proved", "listed"]
    by: str = ""
    counterexample: Values | None = None
    note: str = ""
    formula: Cond = field(kw_only=True, repr=False)

    def __str__(self) -> str:
        if self.standing == "proved":
            return f"{self.text}: proved by {self.by} ({self.reason})"
        found = f"fails at {values_text(self.counterexample)}" if self.counterexample is not None else self.note
        return f"{self.text}: listed, {found} ({self.reason})"


@define(eq=False)
class MeteredSolver:
    """A solver with a step budget for one operation: each query may use half of the remaining steps.

    So a hard query leaves steps for the others. A query that runs out of steps uses up its half; an answered query is
    free, since backends do not report the steps used. cut: whether some query ran out of steps.
    """

    solver: Solver
    steps: int
    cut: bool = field(default=False, init=False)
    _left: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._left = self.steps

    @property
    def name(self) -> str:
        return self.solver.name

    @property
    def capabilities(self) -> Capabilities:
        return self.solver.capabilities

    def check(self, query: Query, budget: Budget) -> Answer:
        share = min(round(self._left * _SHARE), budget.steps)
        if share < _LEAST:
            self.cut = True
            return GaveUp(self.name, self.spent, exhausted=True)
        answer = self.solver.check(query, evolve(budget, steps=share))
        if not isinstance(answer, GaveUp) or not answer.exhausted:
            return answer
        self._left -= share
        if share >= budget.steps:
            return answer
        self.cut = True
        return GaveUp(answer.solver, f"{self.spent}: {answer.reason}", exhausted=True)

    @property
    def spent(self) -> str:
        return f"a query used up its share of the operation's {self.steps} solver steps"


@frozen(eq=False)
class Chain:
    """The solver behind the normal forms, and the search for values of symbols."""

    session: Session
    metered: MeteredSolver

    @classmethod
    def of(cls, solver: Solver, budget: Budget, seconds: float) -> Chain:
        """A chain for one operation. seconds: the solver's step budget, as seconds of an idle core."""
        metered = MeteredSolver(solver, round(seconds * STEPS_PER_SECOND))
        return cls(Session(metered, budget), metered)

    def limits_reached(self) -> str:
        return f"{self.metered.spent}, `under(..., seconds=...)` allows more" if self.metered.cut else ""

    def refuse_contradictions(self, facts: tuple[Cond, ...], known: list[Symbol]) -> None:
        """Raises LayoutError (E811) if no values of the symbols within their ranges satisfy the facts."""
        texts = [f"{symbol.low} <= {symbol.name} <= {symbol.high}" for symbol in known if _is_empty(symbol)]
        if not texts and (facts_from(facts).contradictory or isinstance(self.session.check(facts), Unsat)):
            texts = [show(fact) for fact in facts]
        if texts:
            raise LayoutError(
                "E811",
                f"the assumptions {', '.join(texts)} contradict each other: no sizes satisfy them",
                help="remove or weaken one: a contradiction implies anything",
            )

    def follows(self, hypotheses: tuple[Cond, ...], goal: Cond, /) -> bool:
        return isinstance(self.session.prove(hypotheses, goal), Unsat)

    def example(self, hypotheses: tuple[Cond, ...], refuted: Cond, /) -> str:
        known = sorted(symbols_of(*hypotheses, refuted), key=by_name)
        found = next(self.valuations(hypotheses, known), None)
        return "" if found is None else values_text(found)

    def valuations(self, conditions: Iterable[Cond], known: list[Symbol]) -> Iterator[Values]:
        """Up to _TRIES valuations that satisfy the conditions, least first, as far as the solver finds them."""
        asked = list(conditions)
        sizes = [algebra.sym(symbol) for symbol in known]
        for _ in range(_TRIES):
            answer = self.session.minimise(asked, [algebra.add(*sizes), *sizes])
            if not isinstance(answer, Sat):
                return
            found = {symbol: answer.model.get(symbol, _least(symbol)) for symbol in known}
            yield {symbol.name: value for symbol, value in found.items()}
            others = [algebra.negate(algebra.eq(algebra.sym(symbol), value)) for symbol, value in answer.model.items()]
            asked.append(algebra.any_of(others))


def check_condition(
    chain: Chain,
    hypotheses: tuple[Cond, ...],
    condition: Condition,
    known: list[Symbol],
    replays: Callable[[Values], bool],
) -> SideCondition:
    formula, reason = condition.formula, condition.reason
    text = show(formula)
    by = prover_of(chain, hypotheses, formula)
    if by:
        return SideCondition(text, reason, "proved", by, formula=formula)
    answer = chain.session.prove(hypotheses, formula)
    note = f"not decided: {answer.reason}" if isinstance(answer, GaveUp) else "may fail, but no values were found"
    for found in chain.valuations((*hypotheses, algebra.negate(formula)), known):
        if replays(found):
            return SideCondition(text, reason, "listed", counterexample=found, formula=formula)
        note = f"may fail, as at {values_text(found)}, though the result is right there"
    if chain.limits_reached() and chain.metered.spent not in note:
        note = f"{note}; {chain.limits_reached()}"
    return SideCondition(text, reason, "listed", note=note, formula=formula)


def prover_of(chain: Chain, hypotheses: tuple[Cond, ...], goal: Cond) -> str:
    """The name of the method that proves the goal, or "" if none does."""
    if facts_from(hypotheses).decide(goal):
        return _NORMAL_FORM
    answer = chain.session.prove(hypotheses, goal)
    return answer.solver if isinstance(answer, Unsat) else ""


def _is_empty(symbol: Symbol) -> bool:
    return symbol.low is not None and symbol.high is not None and symbol.low > symbol.high


def _least(symbol: Symbol) -> int:
    low = 1 if symbol.low is None else symbol.low
    return low if symbol.high is None else min(low, symbol.high)


def unique_names(found: Iterable[Symbol]) -> list[Symbol]:
    """The symbols sorted by name. Raises LayoutError (E811) where two have the same name."""
    known = sorted(found, key=by_name)
    names = [symbol.name for symbol in known]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise LayoutError("E811", f"two symbols with different ranges are named {twice}", help="make each symbol once")
    return known


def by_name(symbol: Symbol) -> str:
    return symbol.name


def values_text(found: Values) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(found.items()))
