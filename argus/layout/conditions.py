"""Conditions on symbols, decided by forms, then by the solver chain, or listed with values at which they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from attrs import define, evolve, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Symbol
from argus.core.layout.faults import LayoutError
from argus.core.layout.symbolic import Condition
from argus.core.layout.symbolic.facts import facts_from
from argus.core.query import STEPS_PER_SECOND, Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.core.walk import show
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
    """A condition of a result, under the assumptions and the conditions before it.

    text, reason: the formula and why it is needed. standing: "proved" by `by` (normal form or a solver), or "listed".
    counterexample: for a listed one, values that the assumptions allow, at which it fails and the operation itself
    gives something else or is refused; None where none was found, and `note` says what is known.
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
        found = f"fails at {shown(self.counterexample)}" if self.counterexample is not None else self.note
        return f"{self.text}: listed, {found} ({self.reason})"


@define(eq=False)
class Metered:
    """A solver within the steps of one operation: each query may take half of those that are left.

    So a hard query leaves steps for the others. A query that is given up for want of steps has used up its half; one
    that is answered is free, as backends do not say what it took. cut: whether one was left open for want of steps.
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
        return f"a query's share of the {self.steps} solver steps of the operation is spent"


@frozen(eq=False)
class Chain:
    """Forms are asked before; this is the solver, and the search for values of symbols."""

    session: Session
    metered: Metered

    @classmethod
    def of(cls, solver: Solver, budget: Budget, seconds: float) -> Chain:
        """For one operation, which gives the solver the steps of so many seconds on an idle core."""
        metered = Metered(solver, round(seconds * STEPS_PER_SECOND))
        return cls(Session(metered, budget), metered)

    def shortage(self) -> str:
        return f"{self.metered.spent}, `under(..., seconds=...)` allows more" if self.metered.cut else ""

    def refuse_contradictions(self, facts: tuple[Cond, ...], known: list[Symbol]) -> None:
        """Raises LayoutError (E811) unless some values of the symbols, within their ranges, may satisfy the facts."""
        texts = [f"{symbol.low} <= {symbol.name} <= {symbol.high}" for symbol in known if _is_empty(symbol)]
        if not texts and (facts_from(facts).contradictory or isinstance(self.session.check(facts), Unsat)):
            texts = [show(fact) for fact in facts]
        if texts:
            raise LayoutError(
                "E811",
                f"the assumptions {', '.join(texts)} contradict each other: no sizes satisfy them",
                help="remove or weaken one: from a contradiction anything would follow",
            )

    def follows(self, hypotheses: tuple[Cond, ...], goal: Cond, /) -> bool:
        return isinstance(self.session.prove(hypotheses, goal), Unsat)

    def example(self, hypotheses: tuple[Cond, ...], refuted: Cond, /) -> str:
        known = sorted(symbols_of(*hypotheses, refuted), key=by_name)
        found = next(self.valuations(hypotheses, known), None)
        return "" if found is None else shown(found)

    def valuations(self, conditions: Iterable[Cond], known: list[Symbol]) -> Iterator[Values]:
        """Values under which the conditions hold, the least first, as far as the solver finds them."""
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


def judge(
    chain: Chain,
    hypotheses: tuple[Cond, ...],
    condition: Condition,
    known: list[Symbol],
    replays: Callable[[Values], bool],
) -> SideCondition:
    formula, reason = condition.formula, condition.reason
    text = show(formula)
    by = proved_by(chain, hypotheses, formula)
    if by:
        return SideCondition(text, reason, "proved", by, formula=formula)
    answer = chain.session.prove(hypotheses, formula)
    note = f"not decided: {answer.reason}" if isinstance(answer, GaveUp) else "may fail, but no values were found"
    for found in chain.valuations((*hypotheses, algebra.negate(formula)), known):
        if replays(found):
            return SideCondition(text, reason, "listed", counterexample=found, formula=formula)
        note = f"may fail, as at {shown(found)}, though the result is right there"
    if chain.shortage() and chain.metered.spent not in note:
        note = f"{note}; {chain.shortage()}"
    return SideCondition(text, reason, "listed", note=note, formula=formula)


def proved_by(chain: Chain, hypotheses: tuple[Cond, ...], goal: Cond) -> str:
    """Who proves the goal, or an empty text."""
    if facts_from(hypotheses).decide(goal):
        return _NORMAL_FORM
    answer = chain.session.prove(hypotheses, goal)
    return answer.solver if isinstance(answer, Unsat) else ""


def _is_empty(symbol: Symbol) -> bool:
    return symbol.low is not None and symbol.high is not None and symbol.low > symbol.high


def _least(symbol: Symbol) -> int:
    low = 1 if symbol.low is None else symbol.low
    return low if symbol.high is None else min(low, symbol.high)


def named_once(found: Iterable[Symbol]) -> list[Symbol]:
    """The symbols by name. Raises LayoutError (E811) where two have one name."""
    known = sorted(found, key=by_name)
    names = [symbol.name for symbol in known]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise LayoutError("E811", f"two symbols with different ranges are named {twice}", help="make each symbol once")
    return known


def by_name(symbol: Symbol) -> str:
    return symbol.name


def shown(found: Values) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(found.items()))
