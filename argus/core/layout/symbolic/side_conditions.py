"""The side conditions of a symbolic operation: the conditions on sizes under which its result is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrs import define, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.index_text import show
from argus.core.layout.faults import LayoutError
from argus.core.layout.symbolic.facts import Facts, conjuncts, divisors, facts_from


class Oracle(Protocol):
    """Decides queries that normal forms do not. Every divisor in a query is positive under the hypotheses."""

    def follows(self, hypotheses: tuple[Cond, ...], goal: Cond, /) -> bool:
        """Whether the goal is proved; False if unknown."""
        ...

    def example(self, hypotheses: tuple[Cond, ...], refuted: Cond, /) -> str:
        """Values of the symbols under which the hypotheses hold, as text; empty if unknown."""
        ...

    def limits_reached(self) -> str:
        """Which resource limits left queries undecided, as text; empty if none did."""
        ...


@frozen
class NormalFormsOnly:
    """An oracle without a solver: queries that normal forms do not decide stay undecided."""

    def follows(self, _hypotheses: tuple[Cond, ...], _goal: Cond, /) -> bool:
        return False

    def example(self, _hypotheses: tuple[Cond, ...], _refuted: Cond, /) -> str:
        return ""

    def limits_reached(self) -> str:
        return ""


@frozen
class Condition:
    """A condition under which a result is right, and the reason."""

    formula: Cond
    reason: str

    def __str__(self) -> str:
        return f"{show(self.formula)} ({self.reason})"


_NO_FACTS = facts_from(())
"""The facts without assumptions: only the ranges of symbols."""


@define(eq=False)
class Context:
    """Collects the conditions of one operation. Each is checked under those before it.

    what: the operation, for messages.
    """

    what: str
    assumptions: tuple[Cond, ...]
    oracle: Oracle
    conditions: list[Condition] = field(factory=list[Condition], init=False)
    facts: Facts = field(init=False)
    _own: Facts = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.facts = facts_from(self.assumptions)
        self._own = _NO_FACTS

    @property
    def hypotheses(self) -> tuple[Cond, ...]:
        return conjuncts((*self.assumptions, *(condition.formula for condition in self.conditions)))

    def holds(self, condition: Cond) -> bool:
        """Whether assumptions and conditions so far imply the condition and that its divisors are positive."""
        if condition is algebra.TRUE:
            return True
        if not all(self.holds(algebra.le(1, divisor)) for divisor in divisors(condition)):
            return False
        known = self.facts.decide(condition)
        return self.oracle.follows(self.hypotheses, condition) if known is None else known

    def fails(self, condition: Cond) -> bool:
        """Whether they imply its negation."""
        return self.holds(algebra.negate(condition))

    def is_one(self, a: Index) -> bool:
        """Whether normal forms show that the expression is 1."""
        return self.facts.decide(algebra.eq(a, 1)) is True

    def same(self, a: Index, b: Index) -> bool:
        return self.holds(algebra.eq(a, b))

    def require(self, condition: Cond, reason: str) -> None:
        """Add the condition, unless normal forms show that the earlier conditions imply it.

        Raises LayoutError (E811) if it is false wherever the assumptions hold.
        """
        for divisor in divisors(condition):
            self.require(algebra.le(1, divisor), "divisors are positive")
        for part in conjuncts([condition]):
            if self._own.decide(part):
                continue
            facts = facts_from((*self.hypotheses, part))
            if facts.contradictory or self.fails(part):
                raise self._unsatisfiable(part, reason)
            self.conditions.append(Condition(part, reason))
            self.facts = facts
            self._own = facts_from(each.formula for each in self.conditions)

    def quotient(self, a: Index, b: Index, reason: str) -> Index:
        """a / b; adds the condition that the remainder is 0."""
        self.require(algebra.le(1, b), "divisors are positive")
        if self._own.quotient(a, b) is None:
            self.require(algebra.eq(algebra.mod(a, b), 0), reason)
        return self.exact(a, b)

    def exact(self, a: Index, b: Index) -> Index:
        """a / b, where the remainder is known to be 0."""
        found = self.facts.quotient(a, b)
        return algebra.floordiv(a, b) if found is None else found

    def divides(self, b: Index, a: Index) -> bool:
        """Whether b is known to be positive and to divide a."""
        return self.holds(algebra.le(1, b)) and (
            self.facts.quotient(a, b) is not None or self.holds(algebra.eq(algebra.mod(a, b), 0))
        )

    def undecided_error(self, conditions: Sequence[Cond]) -> LayoutError:
        texts = " or ".join(f"`{show(condition)}`" for condition in conditions)
        short = self.oracle.limits_reached()
        return LayoutError(
            "E811",
            f"the form of {self.what} depends on the sizes: cannot decide whether {texts}"
            + (f"; {short}" if short else ""),
            help="assume one of them with `under(...)`, or that it does not hold",
        )

    def _unsatisfiable(self, condition: Cond, reason: str) -> LayoutError:
        values = self.oracle.example(self.hypotheses, condition)
        shown = "a comparison of numbers that is false" if condition is algebra.FALSE else f"`{show(condition)}`"
        where = f", for example at {values}" if values else ""
        return LayoutError(
            "E811",
            f"{self.what} needs {shown} ({reason}), which is false for all sizes that the assumptions allow{where}",
            help="choose other extents or strides, or weaken the assumptions",
        )
