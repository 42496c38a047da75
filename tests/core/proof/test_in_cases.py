"""References of sums that are equal only in a case of sizes are compared there, under its test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.proof.analysis import analyse
from argus.core.proof.values import in_cases, references_left
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.references_left import depends_on_reference
from argus.core.query import Budget
from argus.core.values.expr import Expr, Reduce, choose, element, expr, fn, reduce_
from argus.core.values.rewriting import nodes
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3
from property_tests.programs import CORPUS, templates

SIZE, OTHER, J, STEP = Symbol("K", "size", 4), Symbol("L", "size", 4), Symbol("j", "fresh", 0), Symbol("i", "fresh", 0)
k, rows, j, i = (algebra.sym(each) for each in (SIZE, OTHER, J, STEP))
ROW = element("X", algebra.sym(Symbol("n", "fresh", 0)))


def highest(end: Index | int, first: Index | int = 0) -> Expr:
    return reduce_("max", STEP, 0, algebra.sub(end, first), element("X", algebra.add(i, first)))


FIRST = highest(4)
ALL = fn("max", FIRST, highest(k, 4))
"""That of a first block and of those after it."""


def weights(reference: Expr) -> Expr:
    return reduce_("sum", J, 0, k, fn("exp", fn("sub", element("X", j), reference)))


def own_where(most: int, of: Expr = ALL) -> Expr:
    """The maximum of the first block in rows up to a length, else another."""
    return choose(algebra.le(k, most), FIRST, of)


def logarithm(reference: Expr) -> Expr:
    return fn("add", fn("log", weights(ALL)), reference)


UP_TO_8 = fn("max", FIRST, highest(algebra.minimum(k, 8), 4))
ONE_ROW = choose(algebra.le(rows, 4), ALL, FIRST)
VALUES: dict[str, tuple[Expr, bool]] = {
    "one block": (logarithm(own_where(4)), True),
    "one block or two": (logarithm(own_where(5)), False),
    "more than one block": (logarithm(choose(algebra.le(k, 4), ALL, FIRST)), False),
    "another size": (logarithm(choose(algebra.le(rows, 4), FIRST, ALL)), False),
    "within a sum": (
        reduce_("sum", J, 0, k, fn("div", fn("exp", fn("sub", element("X", j), own_where(4))), weights(ALL))),
        True,
    ),
    "two tests": (logarithm(own_where(4, choose(algebra.le(k, 8), UP_TO_8, ALL))), True),
    "two tests, of which one decides nothing": (logarithm(own_where(4, ONE_ROW)), False),
    "a test of a coordinate": (logarithm(choose(algebra.le(j, 4), FIRST, ALL)), False),
    "no sum in one case": (
        fn("div", fn("exp", fn("sub", ROW, ALL)), choose(algebra.le(k, 4), expr(1), weights(ALL))),
        False,
    ),
}


@pytest.fixture(name="known", scope="module")
def any_known() -> Known:
    """What is known in a kernel without facts on these sizes."""
    (template,) = templates(CORPUS / "proved" / "softmax_by_the_maximum_of_one_block.py")
    analysis = analyse(template.trace(), Session(Z3(), Budget.about(1.0)))
    return Known(analysis.flows[0], ())


@pytest.mark.parametrize("name", VALUES)
def test_references_are_compared_in_each_case(name: str, known: Known) -> None:
    of, free = VALUES[name]
    assert depends_on_reference(of)  # as one expression
    assert depends_on_reference(of, known) != free


def test_a_case_is_that_of_its_test(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    of, _ = VALUES["one block or two"]
    monkeypatch.setattr(in_cases, "_cases", cases_of_one_block)
    assert not depends_on_reference(of, known)


def cases_of_one_block(of: Expr, _: Cond, known: Known) -> Iterator[tuple[Expr, Known]]:
    """Both cases as if there were one block in both."""
    for here in (known.within(algebra.le(k, 4)), known.within(algebra.le(k, 4))):
        yield here.simplified(of), here


def test_weights_are_divided_in_a_case_without_a_sum(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    of, _ = VALUES["no sum in one case"]
    whole = references_left._is_constant  # pyright: ignore[reportPrivateUsage]

    def without_sums_too(case: Expr) -> bool:
        return not any(isinstance(each, Reduce) and each.op == "sum" for each in nodes(case)) or whole(case)

    assert depends_on_reference(of, known)
    monkeypatch.setattr(references_left, "_is_constant", without_sums_too)
    assert not depends_on_reference(of, known)
