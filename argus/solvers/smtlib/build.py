"""Solver terms from the steps of a lowered query: the half of a backend that is the same for every SMT solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, assert_never

from argus.core.query import Budget, Sat
from argus.solvers.smtlib.form import (
    AtMost,
    Choice,
    Equal,
    Every,
    Lowered,
    Number,
    Opposite,
    Product,
    Some,
    Step,
    Total,
    Variable,
)

Term = Any
"""A solver's own term; solvers ship no types."""


class TermMaker(Protocol):
    """One solver's constructors, one for each kind of step."""

    def number(self, value: int) -> Term: ...

    def variable(self, ordinal: int) -> Term: ...

    def total(self, terms: Sequence[tuple[Term, int]], constant: int) -> Term:
        """`constant + sum(term * factor)`; there may be no terms."""
        ...

    def product(self, left: Term, right: Term) -> Term: ...

    def choice(self, condition: Term, then: Term, other: Term) -> Term: ...

    def at_most(self, left: Term, right: Term) -> Term: ...

    def equal(self, left: Term, right: Term) -> Term: ...

    def conjunction(self, parts: Sequence[Term]) -> Term:
        """True where there are no parts."""
        ...

    def disjunction(self, parts: Sequence[Term]) -> Term:
        """False where there are no parts."""
        ...

    def negation(self, part: Term) -> Term: ...


def build_terms(steps: Sequence[Step], make: TermMaker) -> list[Term]:
    """The term of each step, in order; steps refer only to earlier ones, so one loop suffices at any depth."""
    terms: list[Term] = []
    for step in steps:
        terms.append(build_term(step, terms, make))
    return terms


def build_term(step: Step, terms: Sequence[Term], make: TermMaker) -> Term:
    """The term of one step. terms: those of the steps before it."""
    match step:
        case Number(value=value):
            return make.number(value)
        case Variable(ordinal=ordinal):
            return make.variable(ordinal)
        case Total(parts, constant):
            return make.total([(terms[part], factor) for part, factor in parts], constant)
        case Product(left, right):
            return make.product(terms[left], terms[right])
        case Choice(condition, then, other):
            return make.choice(terms[condition], terms[then], terms[other])
        case AtMost(left, right):
            return make.at_most(terms[left], terms[right])
        case Equal(left, right):
            return make.equal(terms[left], terms[right])
        case Every(parts):
            return make.conjunction([terms[part] for part in parts])
        case Some(parts):
            return make.disjunction([terms[part] for part in parts])
        case Opposite(part):
            return make.negation(terms[part])
        case _:
            assert_never(step)


def read_model(name: str, lowered: Lowered, terms: Sequence[Term], value: Callable[[Term], int]) -> Sat:
    """The solver's model. value: what it gives a term."""
    elements = {
        (array, tuple(value(terms[axis]) for axis in at)): value(terms[position])
        for array, at, position in lowered.elements
    }
    return Sat(name, {symbol: value(terms[position]) for symbol, position in lowered.symbols}, elements)


def milliseconds(budget: Budget) -> int:
    """The budget's wall-clock limit, at least 1 ms: solvers take 0 for no limit."""
    return max(1, round(budget.seconds * 1000))
