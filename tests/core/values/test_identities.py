"""Identities of the normal form, each beside a value that differs from it by one edit; all are compared in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest
from attrs import frozen

from argus.core.algebra import add, const, le, lt, mul, sub, sym
from argus.core.index import Index, Symbol
from argus.core.values.equality import Different, Equal, by_normal_forms, equal
from argus.core.values.expr import Expr, ReduceOp, choose, compare, element, expr, fn, infinity, reduce_
from argus.core.values.rewriting import substitute
from argus.solvers.z3_backend import Z3
from property_tests.values.numbers import differ
from property_tests.values.pairs import answer, outcome

N, M = (sym(Symbol(name, "size", 1)) for name in ("N", "M"))
Q = sym(Symbol("q", "size", 0))
OUTER, INNER = (Symbol(name, "fresh") for name in ("i", "j"))
A, B = sym(OUTER), sym(INNER)
FUNCTIONS = ("mystery", "relu", "tanh", "exp")


@frozen
class Identity:
    """Two forms of one value, and a form of another one."""

    left: Expr
    right: Expr
    wrong: Expr


def x(*at: Index | int) -> Expr:
    return element("X", *at)


def fold(op: ReduceOp, outer: Symbol, inner: Symbol, body: Expr) -> Expr:
    """Of i below N and j below M, one within the other."""
    high = {OUTER: N, INNER: M}
    return reduce_(op, outer, 0, high[outer], reduce_(op, inner, 0, high[inner], body))


def neighbours(by: int) -> Expr:
    """The sum of f(i + by) - f(i), f a sum up to 4 i."""

    def f(at: Index) -> Expr:
        return reduce_("sum", INNER, 0, mul(at, 4), x(B, 0))

    return reduce_("sum", OUTER, 0, N, f(add(A, by)) - f(A))


def ends(count: int) -> Expr:
    """What is left of the differences at both ends."""
    parts = (reduce_("sum", INNER, mul(step, 4), mul(add(N, step), 4), x(B, 0)) for step in range(count))
    found = expr(0)
    for part in parts:
        found = found + part
    return found


def quotients(n: Expr, function: str) -> Identity:
    """Functions of a / (1 + n) and of the same written otherwise."""
    a = x(0) * x(0) + 1
    once, again = a * n / (1 + n), a - a / (1 + n)
    return Identity(fn(function, once), fn(function, again), fn(function, a - a / (2 + n)))


def of_a_choice(function: str) -> Identity:
    test = le(B, Q)
    inside = reduce_("sum", INNER, 0, N, fn(function, choose(test, x(B), 0)))
    outside = reduce_("sum", INNER, 0, N, choose(test, fn(function, x(B)), fn(function, expr(0))))
    return Identity(
        inside, outside, reduce_("sum", INNER, 0, N, choose(lt(B, Q), fn(function, x(B)), fn(function, expr(0))))
    )


def peeled(op: ReduceOp, body: Expr) -> Identity:
    """The extremum over [0, N] of the element at 0 and the others; in the wrong one, of the element at N + 1."""
    combined, rest = "max" if op == "max" else "min", reduce_(op, INNER, 1, add(N, 1), body)
    first, beyond = (substitute(body, {INNER: at}) for at in (const(0), add(N, 1)))
    return Identity(fn(combined, first, rest), reduce_(op, INNER, 0, add(N, 1), body), fn(combined, beyond, rest))


def last_apart(places: int) -> Expr:
    """The greatest of [0, N) and of the element so many places after it."""
    return fn("max", reduce_("max", INNER, 0, N, x(B)), x(add(N, places)))


def identities() -> Mapping[str, Identity]:
    whole = expr(N)
    z, scaled = element("Z", A, B), element("Z", A, B) * 2 + element("Y", A)
    return {
        "maxima change places": Identity(
            fold("max", OUTER, INNER, z), fold("max", INNER, OUTER, z), fold("max", INNER, OUTER, element("Z", B, A))
        ),
        "maxima change places, with more than a maximum": Identity(
            reduce_("max", OUTER, 0, N, reduce_("max", INNER, 0, M, element("Z", A, B) * 2) + element("Y", A)),
            fold("max", INNER, OUTER, scaled),
            fold("max", INNER, OUTER, scaled + element("Y", B)),
        ),
        "a maximum without its first element": peeled("max", x(B) * element("Y", B) + element("Z", 0)),
        "a minimum without its first element": peeled("min", x(B)),
        "a maximum of maxima without its first element": peeled("max", fn("max", x(B), expr(0))),
        "a maximum under a condition without its first element": peeled("max", choose(le(B, Q), x(B), infinity(-1))),
        "a maximum without its last element": Identity(
            last_apart(0), reduce_("max", INNER, 0, add(N, 1), x(B)), last_apart(1)
        ),
        "a maximum in a sum": Identity(
            reduce_("sum", OUTER, 0, M, peeled("max", x(A, B)).left),
            reduce_("sum", OUTER, 0, M, peeled("max", x(A, B)).right),
            reduce_("sum", OUTER, 0, M, peeled("max", x(A, B)).wrong),
        ),
        "a maximum of two elements first": Identity(
            fn("max", fn("max", x(0), x(1)), reduce_("max", INNER, 2, add(N, 2), x(B))),
            reduce_("max", INNER, 0, add(N, 2), x(B)),
            fn("max", fn("max", x(0), x(add(N, 2))), reduce_("max", INNER, 2, add(N, 2), x(B))),
        ),
        "a maximum of one element": Identity(
            reduce_("max", INNER, N, add(N, 1), x(B)), x(N), reduce_("max", INNER, N, add(N, 2), x(B))
        ),
        "differences of neighbours": Identity(neighbours(1), ends(1), ends(2)),
        "differences two apart": Identity(neighbours(2), ends(2), ends(1)),
        "a root of quotients": quotients(whole, "sqrt"),
        **{f"{name} of quotients": quotients(whole, name) for name in ("mystery", "exp", "log", "relu")},
        "a test of quotients": Identity(
            choose(compare("<", x(0) * whole / (1 + whole), 1), x(1), x(2)),
            choose(compare("<", x(0) - x(0) / (1 + whole), 1), x(1), x(2)),
            choose(compare("<", x(0) - x(0) / (1 + whole), 1), x(2), x(1)),
        ),
        **{f"{name} of a choice": of_a_choice(name) for name in FUNCTIONS},
    }


@pytest.mark.parametrize("name", identities())
def test_both_forms_are_equal_and_the_edited_one_is_not(name: str) -> None:
    case = identities()[name]

    assert not differ(case.left, case.right)
    assert outcome(answer(case.left, case.right, (), Z3())) == "proved"
    assert differ(case.left, case.wrong)
    assert isinstance(equal(case.left, case.wrong), Different)


@pytest.mark.parametrize("block", ["q", "y0"])
@pytest.mark.parametrize("blocks", ["NB", "M", "N"])
def test_a_range_is_shifted_alike_in_both_forms(block: str, blocks: str) -> None:
    """The greatest magnitude of activation(x[i]) x[i + columns], whose activation is multiplied out in one form.

    Which of both elements is the first one must not depend on the order of terms.
    """
    first, columns = (mul(sym(Symbol(name, "size", 0)), 128) for name in (block, blocks))
    row, place = sym(Symbol("y1", "fresh", 0)), add(B, first)
    half, other = x(row, place) / 2, x(row, add(place, columns))
    function = fn("tanh", half * (half * half / 4 + 2))
    one, two, wrong = (half * function + half) * other, half * (1 + function) * other, half * (2 + function) * other

    def most(of: Expr) -> Expr:
        return fn("max", reduce_("max", INNER, 0, 128, of), expr(Fraction(1, 2**100))) / 448

    apart = most(fn("max", one, one * -1))
    assert isinstance(by_normal_forms(apart, most(fn("abs", two))), Equal)
    assert not isinstance(by_normal_forms(apart, most(fn("abs", wrong))), Equal)


def test_maxima_whose_ranges_depend_on_each_other_keep_their_places() -> None:
    z = element("Z", A, B)
    below = reduce_("max", OUTER, 0, N, reduce_("max", INNER, 0, add(A, 1), z))
    scaled = reduce_("max", OUTER, 0, N, reduce_("max", INNER, 0, M, z) * element("Y", A))

    assert isinstance(equal(below, fold("max", INNER, OUTER, z)), Different)
    assert not isinstance(equal(scaled, fold("max", INNER, OUTER, z * element("Y", A))), Equal)


def test_an_element_beside_a_range_that_may_be_empty_stays_apart() -> None:
    after = fn("max", x(Q), reduce_("max", INNER, 0, N, choose(lt(Q, B), x(B), infinity(-1))))
    inside = choose(le(Q, B), x(B), infinity(-1))
    before = fn("max", x(sub(N, 1)), reduce_("max", INNER, 0, sub(N, 1), inside))

    assert isinstance(equal(after, before), Different)
    assert not isinstance(by_normal_forms(after, before), Equal)


def test_a_quotient_within_a_function_is_cleared_only_where_its_divisor_is_shown() -> None:
    s = element("s")
    held, formula = fn("mystery", s / s), fn("mystery", expr(1))

    assert not isinstance(equal(held, formula), Equal)
    assert not isinstance(equal(fn("mystery", (s * s + s) / (1 + s)), fn("mystery", s)), Equal)


def test_a_function_of_many_choices_is_compared_in_time() -> None:
    held = x(0)
    for _ in range(60):
        held = held + held
    for number in range(4):
        held = fn("mystery", choose(lt(number, Q), held, held + number))

    assert isinstance(by_normal_forms(held, held), Equal)
    assert not isinstance(by_normal_forms(held, held + 1), Equal)
