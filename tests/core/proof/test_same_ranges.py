"""Sums are equal where their terms are, and where those of one range alone are 0."""

from __future__ import annotations

import pytest

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.proof.analysis import analyse
from argus.core.proof.values.held import same_ranges
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.same_ranges import equal_over_ranges
from argus.core.query import Budget
from argus.core.values.expr import CompareOp, Expr, choose, compare, element, fn, reduce_
from argus.solvers.session.session import Session
from argus.solvers.z3_backend import Z3
from property_tests.programs import CORPUS, templates

SIZE, OTHER, Y = Symbol("K", "size", 4), Symbol("L", "size", 4), Symbol("y", "fresh", 0)
J, STEP, FLAT = (Symbol(name, "fresh", 0) for name in "jit")
k, rows, y, j, i, t = (algebra.sym(each) for each in (SIZE, OTHER, Y, J, STEP, FLAT))


def total(variable: Symbol, high: Index | int, body: Expr, where: Cond = algebra.TRUE) -> Expr:
    return reduce_("sum", variable, 0, high, body, where)


def inside(of: Index, most: Index | int, then: Expr) -> Expr:
    """The value where a place lies in [0, most), else 0."""
    return choose(algebra.all_of((algebra.le(0, of), algebra.lt(of, most))), then, 0)


def alike(one: Index, two: Index) -> Cond:
    """Whether both are even or odd: a condition that no range has in place of it."""
    return algebra.eq(algebra.mod(algebra.add(one, two), 2), 0)


def taps(at: Index, tap: Index) -> Expr:
    """A product of a padded input and a tap of a filter."""
    return fn("mul", inside(at, rows, element("X", at)), element("F", tap))


THREE = total(J, 3, total(STEP, 3, fn("mul", element("X", j, algebra.add(i, y)), element("F", j, i))))
FLATTENED = total(
    FLAT,
    9,
    fn(
        "mul",
        element("X", algebra.floordiv(t, 3), algebra.add(algebra.mod(t, 3), y)),
        element("F", algebra.floordiv(t, 3), algebra.mod(t, 3)),
    ),
)
LISTED = total(J, 3, fn("mul", element("X", j), element("F", j)))
WRITTEN = fn(
    "add",
    fn("mul", element("X", 2), element("F", 2)),
    fn("add", fn("mul", element("X", 0), element("F", 0)), fn("mul", element("F", 1), element("X", 1))),
)


def gated(of: Expr, by: Expr, op: CompareOp = "<") -> Expr:
    """A function of a number, used twice, where a number is above 0."""
    return choose(compare(op, 0, by), fn("div", of, fn("add", 1, fn("exp", fn("neg", of)))), 0)


VALUES: dict[str, tuple[Expr, Expr, bool]] = {
    "written out within a function": (fn("exp", LISTED), fn("exp", WRITTEN), True),
    "another term within a function": (fn("exp", LISTED), fn("exp", fn("add", WRITTEN, element("X", 3))), False),
    "another function": (fn("exp", LISTED), fn("tanh", WRITTEN), False),
    "within a test": (gated(LISTED, LISTED), gated(WRITTEN, WRITTEN), True),
    "a test of another sum": (gated(LISTED, LISTED), gated(WRITTEN, fn("add", WRITTEN, 1)), False),
    "another test": (gated(LISTED, LISTED), gated(WRITTEN, WRITTEN, "<="), False),
    "other branches": (gated(LISTED, LISTED), choose(compare("<", 0, WRITTEN), 0, gated(WRITTEN, WRITTEN)), False),
    "another order": (
        total(J, k, total(STEP, rows, element("X", j, i))),
        total(STEP, rows, total(J, k, element("X", j, i))),
        True,
    ),
    "other names": (total(J, k, element("X", j)), total(STEP, k, element("X", i)), True),
    "digits of one number": (FLATTENED, THREE, True),
    "padded": (
        total(J, 3, taps(algebra.sub(algebra.add(j, y), 1), j)),
        total(STEP, 3, taps(algebra.sub(algebra.add(i, y), 1), i)),
        True,
    ),
    "a test that the range decides": (
        total(J, k, inside(j, k, element("X", j))),
        total(J, k, element("X", j)),
        True,
    ),
    "a condition of the sum": (
        total(J, k, element("X", j), algebra.lt(j, rows)),
        total(J, k, choose(algebra.lt(j, rows), element("X", j), 0)),
        True,
    ),
    "functions of sums": (
        fn("max", total(J, k, element("X", j)), 0),
        fn("max", total(STEP, k, element("X", i)), 0),
        True,
    ),
    "parts of a sum": (
        fn("sub", total(J, k, element("X", j)), total(STEP, k, element("F", i))),
        total(J, k, fn("sub", element("X", j), element("F", j))),
        True,
    ),
    "a sum and what is added": (
        fn("add", element("F", y), total(J, k, element("X", j))),
        fn("sub", total(STEP, k, element("X", i)), fn("neg", element("F", y))),
        True,
    ),
    "ranges of which neither is within the other": (
        total(J, algebra.mul(algebra.floordiv(algebra.add(k, 7), 8), 8), inside(j, 48, inside(j, k, element("X", j)))),
        total(J, 48, inside(j, k, element("X", j))),
        True,
    ),
    "zeros beyond the other range, along two axes": (
        total(J, 5, total(STEP, k, inside(j, 3, inside(i, 2, element("X", j, i))))),
        total(J, 3, total(STEP, 2, element("X", j, i))),
        True,
    ),
    "zeros beyond the other range along one axis of two": (
        total(J, 5, total(STEP, k, inside(j, 3, element("X", j, i)))),
        total(J, 3, total(STEP, 2, element("X", j, i))),
        False,
    ),
    "something else is added": (
        fn("add", element("F", y), total(J, k, element("X", j))),
        fn("add", element("X", y), total(J, k, element("X", j))),
        False,
    ),
    "subtracted in place of added": (
        fn("sub", total(J, k, element("X", j)), total(STEP, k, element("F", i))),
        total(J, k, fn("add", element("X", j), element("F", j))),
        False,
    ),
    "from another number on": (
        reduce_("sum", J, 1, k, element("X", j)),
        total(J, k, element("X", j)),
        False,
    ),
    "turned": (
        total(J, 3, total(STEP, 3, element("X", j, i))),
        total(J, 3, total(STEP, 3, element("X", algebra.sub(2, j), i))),
        True,
    ),
    "another length": (total(J, k, element("X", j)), total(J, rows, element("X", j)), False),
    "one less": (total(J, algebra.sub(k, 1), element("X", j)), total(J, k, element("X", j)), False),
    "another element": (
        total(J, k, element("X", j)),
        total(J, k, element("X", algebra.add(j, 1))),
        False,
    ),
    "a test that the range does not decide": (
        total(J, k, choose(algebra.lt(j, rows), element("X", j), 0)),
        total(J, k, element("X", j)),
        False,
    ),
    "padded by one more": (
        total(J, 3, taps(algebra.sub(algebra.add(j, y), 1), j)),
        total(J, 3, taps(algebra.sub(algebra.add(j, y), 2), j)),
        False,
    ),
    "a range within another": (
        total(J, k, total(STEP, j, element("X", j, i))),
        total(J, k, total(STEP, j, element("X", i, j))),
        False,
    ),
    "a condition on what another range's variable is named like": (
        total(J, k, total(Y, rows, element("X", j, y)), alike(j, y)),
        total(J, k, total(STEP, rows, element("X", j, i), alike(j, i))),
        False,
    ),
    "another reduction": (
        reduce_("max", J, 0, k, element("X", j)),
        total(J, k, element("X", j)),
        False,
    ),
    "other operands": (
        fn("sub", total(J, k, element("X", j)), total(J, k, element("F", j))),
        fn("sub", total(J, k, element("F", j)), total(J, k, element("X", j))),
        False,
    ),
    "no reduction": (element("X", y), element("X", y), False),
}


@pytest.fixture(name="known", scope="module")
def any_known() -> Known:
    """What is known in a kernel without facts on these sizes."""
    (template,) = templates(CORPUS / "proved" / "softmax_by_the_maximum_of_one_block.py")
    analysis = analyse(template.trace(), Session(Z3(), Budget.about(1.0)))
    return Known(analysis.flows[0], ())


@pytest.mark.parametrize("name", VALUES)
def test_reductions_are_compared_term_by_term(name: str, known: Known) -> None:
    held, formula, same = VALUES[name]

    assert equal_over_ranges(known, held, formula) is same
    assert equal_over_ranges(known, formula, held) is same


def test_terms_of_one_range_alone_are_compared_with_0(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum with one term less would pass if they were not."""
    held, formula, _ = VALUES["one less"]
    monkeypatch.setattr(same_ranges, "_is_zero_beyond", lambda *_: True)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    assert equal_over_ranges(known, held, formula)


def test_tests_of_choices_are_compared(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another operation, and a test of another sum, would pass if they were not."""
    wrong = [VALUES[name][:2] for name in ("another test", "a test of another sum")]
    assert not any(equal_over_ranges(known, *each) for each in wrong)
    monkeypatch.setattr(same_ranges._Operands, "_are_same_tests", lambda *_: True)  # pyright: ignore[reportPrivateUsage, reportUnknownLambdaType, reportUnknownArgumentType]

    assert all(equal_over_ranges(known, *each) for each in wrong)


def test_sums_within_functions_are_compared(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum with another term would pass if they were not."""
    wrong = VALUES["another term within a function"][:2]
    assert not equal_over_ranges(known, *wrong)
    monkeypatch.setattr(same_ranges._Operands, "_are_equal_sums", lambda *_: True)  # pyright: ignore[reportPrivateUsage, reportUnknownLambdaType, reportUnknownArgumentType]

    assert equal_over_ranges(known, *wrong)


def test_a_condition_around_does_not_name_the_variable_within(known: Known) -> None:
    """Names may be alike where expressions are not simplified, which renames variables."""
    held, formula, _ = VALUES["a condition on what another range's variable is named like"]

    compared = same_ranges._Operands(known)  # pyright: ignore[reportPrivateUsage]
    assert not compared.are_equal(held, formula)
    turned = total(STEP, rows, total(J, k, element("X", j, i), alike(j, i)))
    assert compared.are_equal(turned, formula)
