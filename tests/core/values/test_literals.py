"""Conditions that a test implies: each holds at all numbers at which the test does."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from argus.core import algebra
from argus.core.algebra import add, eq, floordiv, le, lt, maximum, minimum, mul, sub, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.values.equality import Equal, equal
from argus.core.values.expr import choose, element, expr
from argus.core.values.literals import certain
from argus.core.values.truth import holds
from argus.core.walk import evaluate

A, B = Symbol("a", "size", 0), Symbol("b", "size", 0)
POINTS = [dict(zip((A, B), numbers, strict=True)) for numbers in product(range(7), repeat=2)]
X = element("X")


def integer(random: Random) -> Index:
    one, two = (add(mul(sym(random.choice((A, B))), random.choice((1, 2, -1))), random.randrange(-3, 4)) for _ in "xy")
    match random.randrange(5):
        case 0:
            return minimum(one, two)
        case 1:
            return maximum(one, two)
        case 2:
            return floordiv(one, random.choice((2, 3)))
        case 3:
            return floordiv(minimum(one, two), 2)
        case _:
            return one


def condition(random: Random, depth: int = 2) -> Cond:
    match random.randrange(4) if depth else 3:
        case 0:
            return algebra.all_of((condition(random, depth - 1), condition(random, depth - 1)))
        case 1:
            return algebra.any_of((condition(random, depth - 1), condition(random, depth - 1)))
        case 2:
            return algebra.negate(condition(random, depth - 1))
        case _:
            return random.choice((le, lt, eq))(integer(random), integer(random))


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(8))
def test_what_a_test_implies_holds_where_it_does(seed: int) -> None:
    random, implied = Random(seed), 0  # noqa: S311 reason: no cryptography
    for _ in range(80):
        given = condition(random)
        for each in certain(holds(given)):
            implied += 1
            assert all(evaluate(each, at) for at in POINTS if evaluate(given, at)), (given, each)
    assert implied > 30


BLOCKS = floordiv(add(minimum(sym(A), sym(B)), 7), 8)


def test_a_bound_of_a_rounded_minimum_is_one_of_both_operands() -> None:
    found = set(certain(holds(le(2, BLOCKS))))
    assert {le(9, sym(A)), le(9, sym(B))} <= {*found, *(algebra.negate(algebra.negate(each)) for each in found)}


def test_a_fact_decides_tests_that_are_written_otherwise() -> None:
    value = choose(le(sym(A), 8), X, expr(0))

    assert isinstance(equal(value, expr(0), (le(2, BLOCKS),)), Equal)
    assert not isinstance(equal(value, expr(0), (le(1, BLOCKS),)), Equal)
    assert not isinstance(equal(value, X, (le(2, BLOCKS),)), Equal)


def test_of_two_that_may_hold_neither_is_implied() -> None:
    either = algebra.any_of((le(sym(A), 3), le(sym(B), sub(sym(A), 1))))
    assert not list(certain(holds(either)))
