"""Formulas are compared in cases of sizes: each case counts, and a minimum loses an operand by a known order alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from attrs import evolve

from argus.core.index import Cond, Index
from argus.core.proof.limits import integers
from argus.core.proof.values.held import facts
from argus.core.proof.values.held.edges import Holds, at_edges
from argus.core.query import Budget
from argus.core.values import decided, ends
from argus.core.values.expr import Expr
from argus.core.verdict import Proved, Unknown
from argus.language import Template
from argus.verifier.kernel import verify
from tests.verifier.switched_off_checks import Case, always, cases_test, load_edited

WITHOUT_RUNS = evolve(Budget(), runs=0)
EMPTY = "formula_guarded_sum_of_empty_rows"
LATER_ROWS = "where(r < 5, 0, total(lambda n: exp2(X[r, n]), over=N))"


def is_proved(kernel: Template) -> bool:
    verdict = verify(kernel, solver="z3", budget=WITHOUT_RUNS).verdict
    assert isinstance(verdict, Proved | Unknown)
    return isinstance(verdict, Proved)


def first_cases_alone(patch: pytest.MonkeyPatch) -> None:
    """The second case of a condition is taken to be the first once more."""
    patch.setattr(facts, "both_cases", _the_first_twice)


def _the_first_twice(test: Cond) -> tuple[Cond, Cond]:
    return test, test


def any_order_is_known(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decided, "least_of", _least_of_any_order)


def _least_of_any_order(index: Index, _: object) -> Index:
    return ends.least_of(index, All())


class All(frozenset[Cond]):
    """All conditions."""

    def __contains__(self, cond: object) -> bool:
        return True


def every_bound_is_met(patch: pytest.MonkeyPatch) -> None:
    """An integer that a case bounds is taken for the bound."""

    def unasked(_: Holds, cases: Iterable[Cond], *roots: Expr) -> tuple[Expr, ...]:
        return at_edges(always, cases, *roots)

    patch.setattr(facts, "at_edges", unasked)


def nothing(_: Expr) -> Iterator[Cond]:
    return iter(())


@pytest.mark.share(3)
def test_a_sum_is_compared_where_it_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = load_edited(EMPTY, ("where(found == 0, 0.0,", "where(found == 0, 1.0,"))
    assert not is_proved(wrong)
    with monkeypatch.context() as patch:
        patch.setattr(facts, "inhabited_tests", nothing)
        assert not is_proved(load_edited(EMPTY))
    first_cases_alone(monkeypatch)
    assert is_proved(wrong)


@pytest.mark.share(3)
def test_what_a_condition_leaves_out_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both forms of the condition, as written and as simplified, hold in its case, and neither in the other."""
    wrong = load_edited(EMPTY, ("total(lambda n: exp2(X[r, n]), over=N)", LATER_ROWS))
    assert not is_proved(wrong)
    first_cases_alone(monkeypatch)
    assert is_proved(wrong)


def no_operand_of_a_minimum(patch: pytest.MonkeyPatch) -> None:
    """Numbers are looked at nowhere among intermediate results."""
    patch.setattr(integers, "Const", type("Nothing", (), {}))


CASES: list[Case] = [
    ("formula_sum_beyond_the_shorter_row", "I39", any_order_is_known),
    ("formula_second_column_of_short_rows", "I39", every_bound_is_met),
    ("minimum_with_a_number_beyond_32_bits", "I28", no_operand_of_a_minimum),
]
test_the_check_is_needed = cases_test(CASES)
