"""Property: all backends give the same answer to a query, and every model satisfies its query."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from argus.core.query import Budget, GaveUp, Query, Sat
from argus.solvers.base import Solver
from argus.solvers.cvc5_backend import Cvc5
from argus.solvers.enumeration import Enumerate
from argus.solvers.model import describe, fault
from argus.solvers.z3_backend import Z3
from property_tests.depth import examples
from property_tests.strategies import index_expressions, queries

BUDGET = Budget.about(0.2)
"""Of products of unknowns cvc5 may branch without end: what it does not find soon it gives up."""


def assert_same_answer(solver: Solver, query: Query) -> None:
    truth = Enumerate().check(query, BUDGET)
    answer = solver.check(query, BUDGET)

    assert not isinstance(truth, GaveUp), truth.reason
    if isinstance(answer, GaveUp):
        return
    assert isinstance(answer, Sat) == isinstance(truth, Sat), describe(query)
    for found in (truth, answer):
        assert not isinstance(found, Sat) or fault(query, found.model) is None


@pytest.mark.share(4, among="two solvers")
@pytest.mark.parametrize("solver", [Z3(), Cvc5()], ids=lambda solver: solver.name)
@settings(max_examples=examples(200))
@given(query=queries(index_expressions(symbolic_divisors=False, bitwise=False)))
def test_with_constant_divisors(solver: Solver, query: Query) -> None:
    assert_same_answer(solver, query)


@pytest.mark.share(4, among="two solvers")
@pytest.mark.parametrize("solver", [Z3(), Cvc5()], ids=lambda solver: solver.name)
@settings(max_examples=examples(120))
@given(query=queries())
def test_with_every_operator(solver: Solver, query: Query) -> None:
    assert_same_answer(solver, query)
