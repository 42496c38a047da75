"""Which values are shown to be at most a number: checked beside the numbers of small and of random expressions."""

from __future__ import annotations

from fractions import Fraction
from math import inf, isnan, nan
from random import Random

import numpy as np
import pytest

from argus.core.algebra import TRUE, const, le, lt, sym
from argus.core.elementwise import evaluate_op
from argus.core.index import Cond, Symbol
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Infinity,
    Number,
    Reduce,
    choose,
    compare,
    element,
    expr,
    fn,
    infinity,
    reduce_,
)
from argus.core.values.limits import clamped, is_at_most, is_below
from argus.core.walk import evaluate, symbols

ROW, V, N = Symbol("i", "fresh", 0, 3), Symbol("v", "fresh", 0), Symbol("N", "size", 0)
X, Y = element("X", sym(ROW)), element("X", sym(V))
NOTHING, SCALE = infinity(-1), fn("max", element("S"), 1)
SIZE = 4
HIGH = reduce_("max", V, 0, SIZE, Y)


def known(cond: Cond) -> bool:
    """What the range of `i` tells."""
    return all(bool(evaluate(cond, {ROW: i, N: 2})) for i in range(SIZE)) and N not in symbols(cond)


def number(of: Expr, x: tuple[float, ...], i: int) -> float:
    """The value at an element, with the elements x of X, 3 of S; NaN where it has none."""

    def at(of: Expr, env: dict[Symbol, int]) -> float:
        match of:
            case Number(value=value):
                return float(value)
            case Infinity(sign=sign):
                return sign * inf
            case Element(tensor=tensor, at=places):
                return x[int(evaluate(places[0], env))] if tensor == "X" else 3.0
            case Fn(name=name, args=args):
                given = [at(each, env) for each in args]
                return nan if any(map(isnan, given)) else evaluate_op(name, *given)
            case Choose(test=Compare(op="==", left=left, right=right), then=then, other=other):
                return at(then if at(left, env) == at(right, env) else other, env)
            case Choose(test=test, then=then, other=other):
                assert not isinstance(test, Compare)
                return at(then if evaluate(test, env) else other, env)
            case Reduce(variable=variable, low=low, high=high, body=body):
                places = range(int(evaluate(low, env)), int(evaluate(high, env)))
                found = [at(body, env | {variable: place}) for place in places]
                return nan if any(map(isnan, found)) else max(found, default=-inf)
            case _:
                raise AssertionError(of)

    return at(of, {ROW: i, N: 2})


def drawn(random: Random, depth: int) -> Expr:
    """A random expression of what the rules look at."""
    if depth == 0:
        return random.choice((X, X, HIGH, HIGH, SCALE, NOTHING, expr(random.choice((-2, 0, 1, 3)))))
    made = random.choice(("add", "sub", "neg", "mul", "max", "min", "exp2", "choose", "guard", "same"))
    one, two = drawn(random, depth - 1), drawn(random, depth - 1)
    match made:
        case "neg" | "exp2":
            return fn(made, one)
        case "mul":
            return fn("mul", one, random.choice((SCALE, fn("neg", SCALE))))
        case "choose":
            return choose(lt(sym(ROW), sym(N)), one, two)
        case "guard":
            return choose(compare("==", one, NOTHING), 0, one)
        case "same":
            return fn("add", fn("mul", one, SCALE), fn("mul", two, fn("neg", SCALE)))
        case _:
            return fn(made, one, two)


def test_what_is_shown_of_random_expressions_holds_for_random_numbers() -> None:
    random, shown = Random(5), 0  # noqa: S311 reason: a seed makes the draws repeatable
    for _ in range(1500):
        of, limit = drawn(random, random.randint(1, 4)), Fraction(random.choice((0, 1, 2, 8, 448)))
        if not is_at_most(of, limit, known):
            continue
        shown += 1
        for _ in range(4):
            x = tuple(random.choice((-3.0, -1.0, 0.0, 0.5, 2.0, 7.0)) for _ in range(SIZE))
            found = [number(of, x, i) for i in range(SIZE)]
            assert all(isnan(each) or each <= float(limit) + 1e-9 for each in found), (of, limit, x, found)
    assert shown > 200


def weight(guard: Expr, score: Expr = X, more: float = 8) -> Expr:
    scaled = fn("mul", guard, fn("neg", SCALE))
    return fn("exp2", fn("fma", score, SCALE, fn("add", scaled, Fraction(more))))


SEEN, FEW = choose(lt(sym(ROW), sym(N)), X, NOTHING), reduce_("max", V, 0, SIZE - 1, Y)
OF_SEEN = reduce_("max", V, 0, SIZE, choose(lt(sym(V), sym(N)), Y, NOTHING))


@pytest.mark.parametrize(
    ("of", "within"),
    [
        (weight(HIGH), True),
        (weight(fn("max", element("H"), HIGH)), True),
        (weight(OF_SEEN, SEEN), True),
        (weight(choose(compare("==", OF_SEEN, NOTHING), 0, OF_SEEN), SEEN), True),
        (weight(choose(compare("==", FEW, NOTHING), 0, HIGH)), False),  # another maximum is -inf
        (weight(HIGH, more=9), False),
        (weight(FEW), False),  # the maximum of other elements
        (weight(fn("min", element("H"), HIGH)), False),
        (weight(OF_SEEN), False),  # the maximum of what is seen, of any score
        (weight(reduce_("max", V, 0, SIZE, element("Z", sym(V)))), False),
        (fn("exp2", fn("sub", X, HIGH)), True),
        (fn("exp2", fn("sub", HIGH, X)), False),
        (fn("exp2", fn("sub", fn("mul", X, 2), HIGH)), False),  # of other scales
        (fn("sub", X, X), True),
        (X, False),
    ],
)
def test_a_clamp_is_the_value_where_that_lies_within(of: Expr, within: bool) -> None:
    low, high = expr(-448), expr(448)
    assert (clamped(of, low, high, known) is of) == within
    assert within or clamped(of, low, high, known) is fn("min", fn("max", of, low), high)


def test_a_place_beyond_the_range_is_none_of_it() -> None:
    row = sym(Symbol("row", "fresh", -SIZE))
    low, high = le(const(0), row), lt(row, const(SIZE))
    assert is_below(element("X", row), HIGH, lambda cond: cond in (low, high, TRUE))
    assert not is_below(element("X", row), HIGH, lambda cond: cond in (low, TRUE))
    assert not is_below(element("X", row), HIGH, lambda cond: cond in (high, TRUE))


def test_a_clamp_has_the_numbers_of_hardware() -> None:
    x = np.array([-inf, -449, -1, 0, 448, 449, inf, nan], np.float32)
    wanted = np.array([-448, -448, -1, 0, 448, 448, 448, nan], np.float32)
    found = [evaluate_op("clamp", float(each), -448.0, 448.0) for each in x]
    assert np.array_equal(np.array(found, np.float32), wanted, equal_nan=True)
    assert evaluate_op("clamp", 1.0, 3.0, 2.0) == evaluate_op("clamp", 5.0, 3.0, 2.0) == 2.0
