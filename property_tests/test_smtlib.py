"""Property: a query's SMT-LIB script parses to the query, and other parsers give it the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from argus.core.query import Budget, GaveUp, Query, Sat
from argus.solvers.base import Solver
from argus.solvers.cvc5_backend import Cvc5Text
from argus.solvers.enumeration import Enumerate
from argus.solvers.model import describe, fault
from argus.solvers.smtlib.form import Inexpressible
from argus.solvers.smtlib.reader import read_script
from argus.solvers.smtlib.script import export
from argus.solvers.z3_backend import Z3Text
from property_tests.depth import examples
from property_tests.strategies import queries

BUDGET = Budget.about(2.0)


@pytest.mark.share(2)
@settings(max_examples=examples(300))
@given(query=queries())
def test_a_script_is_read_back(query: Query) -> None:
    text = export(query)

    if isinstance(text, Inexpressible):
        assert "without a known bound" in text.reason or "few bits" in text.reason
        return
    assert read_script(text).query == query
    assert read_script(text).query.key == query.key


@pytest.mark.share(6)
@pytest.mark.parametrize("solver", [Z3Text(), Cvc5Text()], ids=lambda solver: solver.name)
@settings(max_examples=examples(80))
@given(query=queries())
def test_readers_of_the_script_give_the_answer(solver: Solver, query: Query) -> None:
    truth = Enumerate().check(query, BUDGET)
    answer = solver.check(query, BUDGET)

    assert not isinstance(truth, GaveUp), truth.reason
    if isinstance(answer, GaveUp):
        return
    assert isinstance(answer, Sat) == isinstance(truth, Sat), describe(query)
    assert not isinstance(answer, Sat) or fault(query, answer.model) is None
