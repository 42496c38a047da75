"""Reductions over a flattened index and their nests over digits have the same value, whatever the extents."""

from __future__ import annotations

from itertools import product

import pytest

from argus.core import algebra
from argus.core.algebra import add, eq, floordiv, le, mod, mul, sym
from argus.core.index import Index, Symbol
from argus.core.values.digits import by_digits, quotient, without_low_digits
from argus.core.values.drawn import seeded
from argus.core.values.evaluation import Evaluation
from argus.core.values.expr import Expr, Reduce, choose, element, expr, fn, reduce_
from argus.core.walk import evaluate

R, S, C = (sym(Symbol(name, "size", 0, None)) for name in "RSC")
k = sym(Symbol("~1", "fresh", 0))
DEPTH = mul(mul(R, S), C)
ROW, COLUMN, CHANNEL = floordiv(floordiv(k, C), S), mod(floordiv(k, C), S), mod(k, C)


def over(high: Index, body: Expr, low: Index | int = 0) -> Expr:
    return reduce_("sum", Symbol("~1", "fresh", 0), low, high, body)


TAKEN_APART: dict[str, Expr] = {
    "a window": over(DEPTH, element("X", ROW, COLUMN, CHANNEL)),
    "divided at once": over(DEPTH, element("X", floordiv(k, mul(S, C)), floordiv(mod(k, mul(S, C)), C), CHANNEL)),
    "the index itself too": over(DEPTH, fn("mul", element("X", ROW, COLUMN, CHANNEL), element("F", k))),
    "numbers": over(mul(C, 9), element("X", floordiv(k, 9), mod(floordiv(k, 3), 3), mod(k, 3))),
    "under a condition": over(DEPTH, choose(le(COLUMN, 1), element("X", ROW, CHANNEL), expr(0))),
    "a maximum": reduce_("max", Symbol("~1", "fresh", 0), 0, DEPTH, element("X", ROW, COLUMN, CHANNEL)),
    "a range with gaps": reduce_("sum", Symbol("~1", "fresh", 0), 0, DEPTH, element("X", CHANNEL), eq(mod(k, C), 1)),
    "an extent that is a difference": over(
        add(mul(R, S), mul(mul(R, C), -1)), element("X", floordiv(k, add(S, mul(C, -1))), mod(k, add(S, mul(C, -1))))
    ),
    "an outer size": over(DEPTH, fn("add", element("X", floordiv(k, C), CHANNEL), element("Y", floordiv(k, C)))),
}
NAMED = over(
    DEPTH, reduce_("sum", Symbol("~1'", "fresh", 0), 0, 2, element("X", ROW, CHANNEL, sym(Symbol("~1'", "fresh", 0))))
)
TAKEN_APART["names that are in use"] = NAMED
LEFT_ALONE: dict[str, Expr] = {
    "no product": over(add(DEPTH, 1), element("X", floordiv(k, C), CHANNEL)),
    "another start": over(DEPTH, element("X", floordiv(k, C), CHANNEL), low=1),
    "a sum is divided": over(DEPTH, element("X", floordiv(add(k, 1), C))),
    "no divisor of the extent": over(mul(R, S), element("X", floordiv(k, C), CHANNEL)),
    "not a multiple": over(mul(C, 4), element("X", floordiv(k, 3), mod(k, 3))),
}


def levels(of: Expr) -> int:
    return 1 + levels(of.body) if isinstance(of, Reduce) else 0


@pytest.mark.parametrize("name", TAKEN_APART)
def test_a_nest_over_digits_has_the_same_value(name: str) -> None:
    flat = TAKEN_APART[name]
    nest = by_digits(flat)
    assert levels(nest) > levels(flat)
    for sizes in product((0, 1, 2, 3), repeat=3):
        numbers = {symbol.symbol: size for symbol, size in zip((R, S, C), sizes, strict=True)}
        one, two = (Evaluation(numbers, seeded(1), seed=1).value(each) for each in (flat, nest))
        assert one == two, numbers


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_other_reductions_stay_as_they_are(name: str) -> None:
    assert by_digits(LEFT_ALONE[name]) is LEFT_ALONE[name]


def test_an_extent_that_may_be_negative_is_no_digit() -> None:
    free = sym(Symbol("f", "fresh"))
    flat = over(mul(mul(R, free), free), element("X", floordiv(k, free), mod(k, free)))
    assert by_digits(flat) is flat


def test_an_extent_is_a_digit_where_it_is_known_not_to_be_negative() -> None:
    one, other = sym(Symbol("f", "fresh")), sym(Symbol("g", "fresh"))
    flat = over(mul(one, other), element("X", floordiv(k, other), mod(k, other)))
    assert by_digits(flat) is flat
    assert levels(by_digits(flat, lambda extent: extent is one)) == 2


def test_a_shared_part_is_visited_once() -> None:
    value = over(DEPTH, element("X", ROW, COLUMN, CHANNEL))
    for _ in range(60):
        value = fn("add", value, value)
    assert by_digits(value) is by_digits(value)


def test_quotients() -> None:
    assert quotient(DEPTH, mul(S, C)) is R
    assert quotient(mul(C, 12), mul(C, 4)) is algebra.const(3)
    assert quotient(mul(C, 12), algebra.const(5)) is None
    assert quotient(mul(C, 12), R) is None
    assert quotient(add(C, R), C) is None
    difference = add(R, mul(S, -1))
    assert quotient(mul(difference, C), difference) is C
    assert quotient(mul(difference, -3), difference) is algebra.const(-3)
    assert quotient(add(mul(difference, C), 1), difference) is None


@pytest.mark.share(6)
@pytest.mark.parametrize(
    ("step", "low", "divisor", "more"), list(product((2, 3, 8), (2, 8, 9), (6, 24, 32), (-5, 0, 3)))
)
def test_a_quotient_without_low_digits_is_the_same(step: int, low: int, divisor: int, more: int) -> None:
    """Where the low part may reach the next digit, it stays."""
    a, b = (Symbol(name, "size", None, None) for name in "ab")
    number = add(mul(sym(a), step), mod(sym(b), low), more)
    found = without_low_digits(add(mul(floordiv(number, divisor), 3), sym(b)))
    for x, y in product(range(-40, 40, 3), range(10)):
        env = {a: x, b: y}
        assert evaluate(found, env) == 3 * ((x * step + y % low + more) // divisor) + y


def test_low_digits_are_left_out() -> None:
    a, b = (sym(Symbol(name, "size", 0, None)) for name in "ab")
    assert without_low_digits(floordiv(add(mul(a, 8), mod(b, 8)), 32)) is floordiv(a, 4)
    same = floordiv(add(mul(a, 8), mod(b, 9)), 32)
    assert without_low_digits(same) is same
