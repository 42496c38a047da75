"""Backends agree on what the verifier asks: on a sample here, on every query in `benchmarks/solvers.py`.

A query as it is asked has sizes without small bounds, which enumeration cannot try one by one; narrowed to a few
values of each symbol, around a model where there is one, every backend can answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from argus.cli.bench.queries import POINTS, Question, collect, narrowed
from argus.cli.bench.runs import DEFINITE, ask, disagreements, measure
from argus.core.query import Budget
from argus.core.walk import symbols
from argus.solvers.base import Solver
from argus.solvers.cvc5_backend import Cvc5Text
from argus.solvers.registry import get
from argus.solvers.smtlib.reader import read_script
from argus.solvers.smtlib.script import export
from argus.solvers.z3_backend import Z3Text
from property_tests.programs import CORPUS

BUDGET = Budget.about(5.0)
UNDECIDED = ("gave up", "timed out")
KERNELS = (
    "proved/single_buffer.py",
    "proved/two_consumers.py",
    "proved/staged_output.py",
    "refuted/trip_count_short.py",
    "refuted/transposed_b.py",
    "refuted/wrong_swizzle.py",
)


@cache
def questions() -> Sequence[Question]:
    corpus = collect(["argus.kernels.gemm", *(str(CORPUS / each) for each in KERNELS)], get("portfolio"), BUDGET)
    assert corpus.skipped == ()
    assert corpus.kernels >= len(KERNELS) + 7
    return corpus.questions[::3]


@cache
def small() -> Sequence[Question]:
    found = [narrowed(question, get("portfolio"), BUDGET) for question in questions()]
    return tuple({question.query.key: question for question in found}.values())


@pytest.mark.nightly
def test_the_sample_is_worth_asking() -> None:
    assert len(questions()) > 80
    assert {"sat", "unsat"} == {question.status for question in questions()}
    assert all(question.asked_by for question in questions())


@pytest.mark.nightly
def test_solvers_agree_on_queries_as_they_are_asked() -> None:
    tallies = [measure(questions(), name, BUDGET) for name in ("z3", "cvc5", "enumerate")]

    assert list(disagreements(questions(), tallies)) == []
    for tally in tallies[:2]:
        assert sum(tally.count(outcome) for outcome in DEFINITE) >= len(questions()) - 1
        assert tally.count("wrong model") == tally.count("raised") == 0


@pytest.mark.nightly
def test_solvers_and_enumeration_agree_on_narrowed_queries() -> None:
    tallies = [measure(small(), name, BUDGET) for name in ("z3", "cvc5", "enumerate")]

    assert list(disagreements(small(), tallies)) == []
    for tally in tallies:
        # enumeration counts in 64 bits, which a product of a query may exceed
        wide = sum("may exceed 64 bits" in each.reason for each in tally.results)
        assert wide <= len(small()) // 100
        assert sum(tally.count(outcome) for outcome in DEFINITE) == len(small()) - wide
        assert tally.count("sat") > len(small()) // 4
        assert tally.count("unsat") > len(small()) // 4


@pytest.mark.nightly
@pytest.mark.parametrize("solver", [Z3Text(), Cvc5Text()], ids=lambda solver: solver.name)
def test_readers_of_the_scripts_agree(solver: Solver) -> None:
    found = [(question, ask(question.query, solver.name, solver, BUDGET)[0]) for question in questions()]
    wrong = [(asked.query.key, each) for asked, each in found if each.outcome not in (asked.status, *UNDECIDED)]

    assert wrong == []
    assert sum(each.outcome in UNDECIDED for _, each in found) <= len(found) // 20  # those that need most time


@pytest.mark.nightly
def test_scripts_of_the_queries_are_read_back() -> None:
    for question in questions():
        text = export(question.query, question.status)
        assert isinstance(text, str)
        script = read_script(text)
        assert (script.query, script.status) == (question.query, question.status)
        assert script.query.key == question.query.key


@pytest.mark.nightly
def test_narrowed_queries_are_within_those_that_are_asked() -> None:
    for question in questions():
        few = narrowed(question, get("portfolio"), BUDGET).query
        wide = {(s.name, s.kind): s for s in question.query.symbols}
        count = 1
        for symbol in symbols(*few.assertions):
            whole = wide[symbol.name, symbol.kind]
            assert symbol.low is not None
            assert symbol.high is not None
            assert whole.low is None or whole.low <= symbol.low
            assert whole.high is None or symbol.high <= whole.high
            count *= symbol.high - symbol.low + 1
        assert count <= POINTS
