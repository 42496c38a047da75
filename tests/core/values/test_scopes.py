"""A condition counts where it is needed: a branch that is not taken, and what lies outside of a range, need nothing."""

from __future__ import annotations

from fractions import Fraction

import pytest

from argus.core.algebra import add, le, lt, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.values import equality
from argus.core.values.atoms import ONE, Poly
from argus.core.values.conditions import Certain, Scope
from argus.core.values.equality import Equal, Undecided, equal
from argus.core.values.expr import Compare, Expr, choose, compare, element, expr, fn, reduce_
from tests.core.values.formulas import N, R

X, Y, Z = (element(name, R) for name in "XYZ")
I = sym(Symbol("i", "fresh"))  # noqa: E741 reason: the field's name for a row
INSIDE: Cond = lt(R, N)
TESTS: dict[str, Cond | Compare] = {"integers": INSIDE, "data": compare("<", 0, Z)}


def total(body: Expr, *, twice: bool = False) -> Expr:
    return reduce_("sum", Symbol("i", "fresh"), 0, add(N, N) if twice else N, body)


def masked(test: Cond | Compare, body: Expr) -> Expr:
    return choose(test, 1, 0) * body


RECIPROCAL = 1 / element("X", I)
OUTSIDE: dict[str, tuple[Expr, Expr]] = {
    **{f"quotient, {name}": (masked(test, X / Y), choose(test, X / Y, 0)) for name, test in TESTS.items()},
    "logarithm": (masked(INSIDE, fn("log", X)), choose(INSIDE, fn("log", X), 0)),
    "root": (masked(INSIDE, fn("pow", X, Fraction(1, 2))), choose(INSIDE, fn("pow", X, Fraction(1, 2)), 0)),
    "padding": (total(choose(lt(I, N), 1, 0) * RECIPROCAL, twice=True), total(RECIPROCAL)),
    "one element for all": (RECIPROCAL + total(RECIPROCAL) - total(RECIPROCAL), RECIPROCAL),
}
"""What is held needs its condition where the formula does not: a padded or masked element is divided by."""


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_condition_of_a_branch_says_nothing_outside_of_it(name: str) -> None:
    answer = equal(*OUTSIDE[name])

    assert isinstance(answer, Undecided)
    assert answer.conditions
    assert not answer.reason


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_a_condition_of_a_branch_counts_within_it(test: Cond | Compare) -> None:
    assert isinstance(equal(choose(test, X / Y + Z, 0), choose(test, Z + X / Y, 0)), Equal)
    assert isinstance(equal(choose(test, X / Y, X / Y), X / Y), Equal)
    assert isinstance(equal(total(2 * RECIPROCAL), 2 * total(RECIPROCAL)), Equal)


def test_without_scopes_a_masked_quotient_is_taken_for_a_guarded_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def unscoped(scope: Scope, *_: object, **__: object) -> Scope:
        return scope

    monkeypatch.setattr(Scope, "under", unscoped)
    monkeypatch.setattr(Scope, "over", unscoped)

    assert all(isinstance(equal(*pair), Equal) for pair in OUTSIDE.values())


def divided(test: Cond | Compare) -> tuple[Expr, Expr]:
    """Equal where Y + Z is not 0. Where it is, they differ, and no divisor is 0 where the test is false."""
    divisor = Y + Z
    held = choose(test, (Y * Y + Y * Z) / divisor, 0) + choose(compare("==", divisor, 0), 1, 0)
    return held, choose(test, Y + (X / divisor - X / divisor), 0)


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_a_divisor_of_one_branch_may_be_0_in_another(test: Cond | Compare) -> None:
    assert isinstance(equal(*divided(test)), Undecided)


def test_divisors_that_are_forgotten_hide_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgotten(of: Poly) -> Certain:
        del of
        return Certain(ONE)

    monkeypatch.setattr(equality, "Apart", forgotten)

    assert isinstance(equal(*divided(INSIDE)), Equal)


def test_a_divisor_below_zero_in_a_branch_is_not_shown_elsewhere() -> None:
    n, k = sym(Symbol("N", "size", 1)), sym(Symbol("k", "size", 0))
    formula = choose(le(2, n), 1 / -expr(k), 1)
    held = choose(le(2, n), 1, 0) * (1 / -expr(k)) + choose(le(2, n), 0, 1)

    assert not isinstance(equal(held, formula), Equal)
    assert isinstance(equal(formula, formula), Equal)


def peeled(divisor: Expr) -> tuple[Expr, Expr]:
    """A sum of quotients as its first element and the rest, and the sum."""
    j, high = Symbol("j", "fresh"), add(N, 1)

    def body(at: Index | int) -> Expr:
        return fn("round", element("X", at) / divisor)

    return body(0) + reduce_("sum", j, 1, high, body(sym(j))), reduce_("sum", j, 0, high, body(sym(j)))


def test_one_divisor_of_all_elements_counts_for_one_of_them() -> None:
    assert isinstance(equal(*peeled(Y)), Equal)
    assert not isinstance(equal(peeled(Y)[0] + 0 / Z, peeled(Y)[1]), Equal)


def test_a_divisor_counts_with_either_sign_and_with_a_divisor_of_its_own_that_is_above_0() -> None:
    e = 1 + fn("exp", X)
    nothing = e * e * fn("exp", -fn("log", e)) - e
    whole = total(1 + fn("exp", element("X", I)))

    for held in (1 / (whole + nothing), -1 / (nothing - whole), 1 / (whole - nothing)):
        assert isinstance(equal(held, 1 / whole), Equal)
    assert not isinstance(equal(1 / (Y + Z * Z / Z - Z), 1 / Y), Equal)
