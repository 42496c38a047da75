"""The suite passes on every backend, and catches the faults it is there to catch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import frozen

from argus.core.query import Answer, Budget, GaveUp, Query, Sat, Unsat
from argus.solvers.base import Capabilities, Solver
from argus.solvers.conformance import conformance, examples, needs
from argus.solvers.enumeration import Enumerate
from argus.solvers.registry import get

EVERYTHING = Capabilities(unbounded=True, nonlinear=True, bitwise=True, reads=True)
NAMES = ("z3", "cvc5", "enumerate", "portfolio", "all")


@frozen
class Wrong:
    """Answers as it is told to, whatever the query."""

    answer: Callable[[Query], Answer]
    capabilities: Capabilities = EVERYTHING
    name: str = "wrong"

    def check(self, query: Query, budget: Budget) -> Answer:
        assert budget.seconds > 0
        return self.answer(query)


def zeros(query: Query) -> Answer:
    return Sat("wrong", dict.fromkeys(query.symbols, 0))


@pytest.mark.parametrize("name", NAMES)
def test_backends_conform(name: str) -> None:
    failures = [f"{failure.example.name}: {failure.problem}" for failure in conformance(get(name))]

    assert failures == []


@pytest.mark.parametrize(
    ("solver", "problem"),
    [
        (Wrong(lambda _: Unsat("wrong")), "refutes what has a model"),
        (Wrong(zeros), "finds a model of what has none"),
        (Wrong(zeros), "gives a wrong model"),
        (Wrong(lambda _: Sat("wrong", {})), "gives a wrong model"),
        (Wrong(lambda _: GaveUp("wrong", "tired")), "gives up within its capabilities: tired"),
    ],
)
def test_wrong_backends_are_caught(solver: Solver, problem: str) -> None:
    assert any(problem in failure.problem for failure in conformance(solver))


def test_giving_up_beyond_the_capabilities_is_allowed() -> None:
    modest = Wrong(lambda _: GaveUp("wrong", "tired"), Capabilities(False, False, False, False))

    failed = [failure.example for failure in conformance(modest)]

    assert all(needs(example.query) == Capabilities(False, False, False, False) for example in failed)
    assert 0 < len(failed) < len(examples())


def test_names_are_distinct_and_both_answers_occur() -> None:
    names = [example.name for example in examples()]

    assert len(set(names)) == len(names)
    assert {example.expected for example in examples()} == {"sat", "unsat"}


def test_expected_answers_hold_by_enumeration_where_it_reaches() -> None:
    definite = [e for e in examples() if not isinstance(Enumerate().check(e.query, Budget()), GaveUp)]

    assert len(definite) > 20
