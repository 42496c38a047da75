"""A mask that is left out where it would change nothing is the mask; elsewhere it stays under its test."""

from __future__ import annotations

import pytest

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.proof.analysis import analyse
from argus.core.proof.values.held.facts import Known
from argus.core.query import Budget
from argus.core.values.expr import Expr, choose, element, expr
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3
from property_tests.programs import CORPUS, templates

SIZE, J = Symbol("K", "size", 0), Symbol("j", "fresh", 0)
k, j = algebra.sym(SIZE), algebra.sym(J)
PLAIN = element("X", j)
MASKED = choose(algebra.lt(j, k), PLAIN, expr(0))


@pytest.fixture(name="known", scope="module")
def any_known() -> Known:
    """What is known in a kernel without facts on these sizes."""
    (template,) = templates(CORPUS / "proved" / "softmax_by_the_maximum_of_one_block.py")
    analysis = analyse(template.trace(), Session(Z3(), Budget.about(1.0)))
    return Known(analysis.flows[0], ())


@pytest.mark.parametrize(("most", "same"), [(4, True), (5, True), (6, False)])
def test_a_mask_in_one_case_is_the_mask(most: int, same: bool, known: Known) -> None:
    of = choose(algebra.le(k, 4), MASKED, PLAIN)  # else k is at least 5
    here = known.within(algebra.lt(j, most))

    assert (here.simplified(of) is here.simplified(MASKED)) == same
    assert here.equal(of, MASKED) == same


def test_a_mask_left_out_where_it_counts_is_none(known: Known) -> None:
    of = choose(algebra.le(k, 4), PLAIN, MASKED)

    assert not known.within(algebra.lt(j, 5)).equal(of, MASKED)


def test_the_cases_of_an_own_test_are_compared_before_the_whole(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []
    directly = Known._equal  # pyright: ignore[reportPrivateUsage]

    def recorded(self: Known, one: Expr, two: Expr, *, assumed: bool, lemmas: bool = True) -> bool:
        compared.append(one)
        return directly(self, one, two, assumed=assumed, lemmas=lemmas)

    monkeypatch.setattr(Known, "_equal", recorded)
    of = choose(algebra.le(k, 4), MASKED, PLAIN)

    assert known.within(algebra.lt(j, 5)).equal(of, MASKED)
    assert of not in compared
    assert known.equal(MASKED, MASKED)
    assert MASKED in compared  # it has the test, too
