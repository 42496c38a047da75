from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.layout import Layout, LayoutError
from argus.core.query import Answer, Budget, GaveUp, Query
from argus.layout.symbolic import Size, SymbolicLayout, symbols, under
from argus.solvers.base import Capabilities
from argus.solvers.choice import use_solver

M, K, N = symbols("M K N")
ROWS = SymbolicLayout((M, K), (K, 1))
SOLVERS = ("z3", "cvc5")


@pytest.mark.parametrize("solver", SOLVERS)
def test_conditions_are_proved_or_listed_with_a_counterexample(solver: str) -> None:
    result = under(M % 128 == 0, solver=solver).logical_divide(ROWS, (128, 64))
    assert str(result.layout) == "((128,M//128),(64,K//64)):((K,128*K),(1,64))"
    proved, listed = result.conditions
    assert (proved.text, proved.standing, proved.by) == ("M % 128 == 0", "proved", "normal form")
    assert (listed.text, listed.standing, listed.counterexample) == ("K % 64 == 0", "listed", {"K": 1, "M": 128})
    assert result.listed == (listed,)
    assert str(result).splitlines()[2].strip().startswith("K % 64 == 0: listed, fails at K=1, M=128")


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_solver_proves_conditions_that_normal_forms_do_not(solver: str) -> None:
    result = under(2 * N <= M, solver=solver).composition(ROWS, SymbolicLayout((N, 2), (1, N)))
    assert str(result.layout) == "(N,2):(K,K*N)"
    assert {condition.standing for condition in result.conditions} == {"proved"}
    assert solver in {condition.by for condition in result.conditions}


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_condition_that_fails_everywhere_is_refused_with_sizes(solver: str) -> None:
    with pytest.raises(LayoutError, match=r"`K % 64 == 0`.*false for all sizes.*for example at K=65") as refused:
        under(K > 64, K < 128, solver=solver).logical_divide(SymbolicLayout((M, K)), (None, 64))
    assert refused.value.code == "E811"


@pytest.mark.parametrize("solver", SOLVERS)
def test_additive_conditions_are_listed_where_the_operation_is_refused(solver: str) -> None:
    result = under(N < M, N >= 7, M < 20, solver=solver).composition(ROWS, SymbolicLayout((N, 2), (1, N)))
    [listed] = result.listed
    assert listed.text == "2*N <= M"
    values = listed.counterexample
    assert values is not None
    assert 7 <= values["N"] < values["M"] < min(20, 2 * values["N"])


def test_contradicting_assumptions_are_refused() -> None:
    with pytest.raises(LayoutError, match="contradict each other") as refused:
        under(M >= 4, M <= 2).coalesce(ROWS)
    assert refused.value.code == "E811"
    with pytest.raises(LayoutError, match="different ranges are named M"):
        under(M >= 4).coalesce(SymbolicLayout(symbols("M", low=0)))


def test_divisors_in_assumptions_are_positive() -> None:
    by = symbols("B", low=None)[0]
    assert str(under(M % by == 0).facts) == str((*under(by >= 1).facts, *under(M % by == 0).facts[1:]))


def test_equality_with_its_counterexample() -> None:
    with_ = under(M % 128 == 0)
    divided = with_.logical_divide(ROWS, (128, None)).layout
    assert with_.functionally_equal(divided, ROWS).holds is True
    assert under(M * K == N).functionally_equal(SymbolicLayout((M, K)), SymbolicLayout(N)).holds is True
    different = under().functionally_equal(SymbolicLayout((M, K)), ROWS)
    assert different.holds is False
    values = different.counterexample
    assert values is not None
    assert Layout((values["M"], values["K"])).table().tolist() != ROWS.substitute(values).table().tolist()


class Silent:
    """A solver that never answers."""

    name = "silent"
    capabilities = Capabilities(unbounded=True, nonlinear=True, bitwise=True, reads=True)

    def check(self, query: Query, budget: Budget) -> Answer:  # noqa: ARG002 reason: the protocol's
        return GaveUp(self.name, "not in the mood")


def test_undecided_conditions_are_listed_with_the_reason() -> None:
    with use_solver(Silent()):
        result = under(M % 128 == 0).logical_divide(ROWS, (128, 64))
        with pytest.raises(LayoutError, match="cannot decide whether"):
            under(2 * N <= M).composition(ROWS, SymbolicLayout((N, 2), (1, N)))
        unknown = under().functionally_equal(SymbolicLayout(M, K), SymbolicLayout(M, N))
    proved, listed = result.conditions
    assert (proved.standing, proved.by) == ("proved", "normal form")
    assert (listed.standing, listed.counterexample) == ("listed", None)
    assert "not in the mood" in listed.note
    assert unknown.holds is None


def test_a_condition_that_is_only_sufficient_says_so() -> None:
    """The images of a mode of one element are the same whatever its stride."""
    stride = symbols("D", low=0)[0]
    result = under(M <= 1).composition(ROWS, SymbolicLayout((N, 3), (stride, 0)))
    assert all(condition.standing == "proved" for condition in result.conditions)
    one = symbols("Q", high=1)[0]
    presumed = under().logical_product(SymbolicLayout(2), SymbolicLayout((one, 2), (stride - 1, 1)))
    [listed] = presumed.listed
    assert (listed.text, listed.counterexample) == ("D >= 1", None)
    assert "though the result is right there" in listed.note


def test_importing_loads_no_solver() -> None:
    code = "import argus.layout.symbolic, sys; print(sorted({'z3', 'cvc5'} & sys.modules.keys()))"
    done = subprocess.run(  # noqa: S603 reason: our own interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_facts_are_claims_or_bools() -> None:
    for fact in ("x", 1, [M], 0.5, None, M):
        with pytest.raises(LayoutError, match="is no claim") as refused:
            under(fact)  # pyright: ignore[reportArgumentType] reason: the mistake
        assert refused.value.code == "E801"
    assert under(True, M >= 0).facts == ()
    with pytest.raises(LayoutError, match="contradict each other"):
        under(False).coalesce(ROWS)


def test_assumptions_outside_the_ranges_are_refused() -> None:
    bounded = symbols("B", low=5, high=9)[0]
    for with_ in (under(bounded <= 3), under(bounded * bounded >= 100), under(bounded % 11 == 0)):
        with pytest.raises(LayoutError, match="contradict each other") as refused:
            with_.functionally_equal(SymbolicLayout(bounded), Layout(99))
        assert refused.value.code == "E811"
    with pytest.raises(LayoutError, match=r"M <= N.*contradict each other"):
        under(M <= N).functionally_equal(SymbolicLayout(M - N), Layout(99))
    nothing = Size(algebra.sym(Symbol("E", "size", 5, 2)))
    with pytest.raises(LayoutError, match="5 <= E <= 2 contradict"):
        under().functionally_equal(SymbolicLayout(nothing), Layout(99))


def test_results_are_copied_and_pickled_as_equal_values() -> None:
    result = under(M % 128 == 0).logical_divide(ROWS, (128, 64))
    unequal = under().functionally_equal(SymbolicLayout((M, K)), ROWS)
    for value in (result, unequal, under(M % 128 == 0, K > 3)):
        assert copy.deepcopy(value) == value
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(value, protocol)) == value  # noqa: S301 reason: our own bytes


def test_a_pickle_from_another_process_has_the_nodes_of_this_one() -> None:
    code = (
        "import pickle, sys; from argus.layout.symbolic import *; M, K, N = symbols('M K N');"
        "value = under(M % 128 == 0).logical_divide(SymbolicLayout((M, K), (K, 1)), (128, 64));"
        "sys.stdout.buffer.write(pickle.dumps(value))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)  # noqa: S603 reason: our own
    loaded = pickle.loads(done.stdout)  # noqa: S301 reason: our own bytes
    assert loaded == under(M % 128 == 0).logical_divide(ROWS, (128, 64))
    assert loaded.layout.substitute({M: 256, K: 64}) == Layout(((128, 2), (64, 1)), ((64, 8192), (1, 64)))


class Hopeless:
    """A solver that uses up its budget and finds nothing, and records what it was given."""

    name = "hopeless"
    capabilities = Capabilities(unbounded=True, nonlinear=True, bitwise=True, reads=True)

    def __init__(self) -> None:
        self.given: list[int] = []

    def check(self, query: Query, budget: Budget) -> Answer:  # noqa: ARG002 reason: the protocol's
        self.given.append(budget.steps)
        return GaveUp(self.name, "out of budget", exhausted=True)


def test_an_operation_stays_within_its_steps() -> None:
    hopeless = Hopeless()
    result = under(M % 128 == 0, solver=hopeless, seconds=0.3).logical_divide(ROWS, (128, 64))
    assert "a query used up its share of the operation's 1500000 solver steps: out of budget" in result.listed[0].note
    assert hopeless.given == [750_000, 375_000, 187_500]
    with pytest.raises(
        LayoutError, match=r"cannot decide whether.*share of the operation's 1500000 solver steps"
    ) as refused:
        under(K <= N, solver=hopeless, seconds=0.3).composition(SymbolicLayout((M, K), (K, 1)), SymbolicLayout((N, 3)))
    assert refused.value.code == "E811"
    asked = len(hopeless.given)
    unspent = under(M % 128 == 0, solver=hopeless, seconds=0).logical_divide(ROWS, (128, 64))
    assert [condition.standing for condition in unspent.conditions] == ["proved", "listed"]
    assert "a query used up its share of the operation's 0 solver steps" in unspent.listed[0].note
    assert len(hopeless.given) == asked


def test_hard_divides_are_answered_within_their_steps() -> None:
    result = under(K % M == 0, M >= 8, seconds=0.5).logical_divide(SymbolicLayout((K * K, 3, M), (4 * K, K, M - 1)), 2)
    assert any("a query used up its share of the operation's 2500000 solver steps" in c.note for c in result.listed)
