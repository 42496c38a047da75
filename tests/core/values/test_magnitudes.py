"""How large sums of products of integers are: beside all numbers of small ones."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from argus.core import algebra
from argus.core.algebra import const, le, lt, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.values.expr import Expr, choose, compare, element, expr, fn, reduce_
from argus.core.values.magnitudes import Magnitude, magnitude
from argus.core.values.places_below import Range, count_below
from argus.core.walk import evaluate

T, ROW, K = Symbol("t", "fresh", 0), Symbol("i", "fresh", 0), Symbol("K", "size", 0)
BITS = {"A": 8, "B": 8, "S": 4}
A, B, ZERO = element("A", sym(T)), element("B", sym(T)), expr(0)


def at(index: Index | Cond, k: int) -> int:
    return int(evaluate(index, {K: k}))


def of_tiles(high: Index, tile: int, first: int, rows: int, bound: Index | None = None) -> Expr:
    """Sums over tiles of `tile` along K, of the rows from `first` of each."""
    place = algebra.add(algebra.mul(sym(T), tile), algebra.add(sym(ROW), first))
    test = lt(place, sym(K) if bound is None else bound)
    factors = [choose(test, element(name, place), ZERO) for name in "AB"]
    return reduce_("sum", T, 0, high, reduce_("sum", ROW, 0, rows, fn("mul", *factors)))


def test_a_sum_over_tiles_is_as_large_as_their_elements() -> None:
    high = algebra.ceil_div(sym(K), 128)
    found = magnitude(fn("add", of_tiles(high, 128, 0, 64), of_tiles(high, 128, 64, 64)), BITS)

    assert found is not None
    assert found.sign == 1
    for k in (0, 1, 63, 64, 65, 127, 128, 129, 1000):
        assert at(found.most, k) == k << 14
        assert all(at(need, k) for need in found.needs)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(of_tiles(algebra.ceil_div(sym(K), 128), 128, 32, 64), id="rows that both have"),
        pytest.param(of_tiles(algebra.ceil_div(sym(K), 64), 64, 64, 64), id="other tiles"),
        pytest.param(of_tiles(algebra.ceil_div(sym(K), 128), 128, 128, 64), id="rows of the next tile"),
        pytest.param(
            of_tiles(algebra.ceil_div(sym(K), 128), 128, 64, 64, sym(Symbol("L", "size", 0))), id="other ends"
        ),
    ],
)
def test_sums_of_places_that_may_be_the_same_count_twice(other: Expr) -> None:
    high = algebra.ceil_div(sym(K), 128)
    found = magnitude(fn("add", of_tiles(high, 128, 0, 64), other), BITS)

    assert found is not None
    assert found.sign == 0
    assert at(found.most, 128) >= 2 * 64 << 14


def test_places_below_a_bound_are_counted() -> None:
    """Random ranges and tests, beside the number of values that satisfy them."""
    random = Random(5)  # noqa: S311 reason: test data
    exact = known = 0
    for _ in range(400):
        step, rows, first = random.choice((4, 6, 8)), random.choice((1, 2, 3, 4)), random.choice((-1, 0, 2))
        apart, high = random.choice((rows, 1, 2)), algebra.ceil_div(sym(K), step)
        place = algebra.add(algebra.mul(sym(T), step), algebra.add(sym(ROW), first))
        other = algebra.add(place, apart)
        ranges = (Range(T, const(0), high), Range(ROW, const(0), const(rows)))
        parts = [(ranges, (lt(each, sym(K)),)) for each in (place, other)][: random.choice((1, 2))]
        found = count_below(parts)
        if found is None:
            continue
        for k in range(12):
            known += 1
            number = counted(parts, k)
            assert number <= at(found.count, k)
            if found.needs is not None and all(at(need, k) for need in found.needs):
                exact += 1
                assert number == at(found.count, k)
    assert known > 500
    assert exact > 100


def counted(parts: list[tuple[tuple[Range, ...], tuple[Cond, ...]]], k: int) -> int:
    number = 0
    for ranges, tests in parts:
        values = [range(at(each.low, k), at(each.high, k)) for each in ranges]
        for point in product(*values):
            env = {K: k, **{each.variable: value for each, value in zip(ranges, point, strict=True)}}
            number += all(evaluate(test, env) for test in tests)
    return number


def test_a_test_of_no_bound_variable_is_kept() -> None:
    inside = le(sym(K), 7)
    found = magnitude(reduce_("sum", T, 0, 5, fn("mul", choose(inside, A, ZERO), B)), BITS)

    assert found == Magnitude(const(5 << 14), 1, (inside,))


def test_signs() -> None:
    assert magnitude(A, BITS) == Magnitude(const(128), -1)
    assert magnitude(fn("mul", A, element("S")), BITS) == Magnitude(const(128 * 8), 1)
    mixed = magnitude(fn("add", fn("mul", A, B), element("S")), BITS)
    assert mixed == Magnitude(const((1 << 14) + 8))  # both ends are not reached at once


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(element("F"), id="a float"),
        pytest.param(fn("wrapped i32", A), id="an operation that wraps around"),
        pytest.param(fn("div", A, 3), id="a quotient"),
        pytest.param(choose(compare("<", A, B), A, ZERO), id="a test of elements"),
        pytest.param(reduce_("product", T, 0, 5, A), id="a product"),
        pytest.param(reduce_("sum", T, 0, 5, reduce_("sum", ROW, 0, sym(T), A)), id="a triangle"),
        pytest.param(expr(sym(K)), id="a size"),
    ],
)
def test_of_other_values_nothing_is_known(of: Expr) -> None:
    assert magnitude(of, BITS) is None


def test_a_condition_of_the_sum_makes_it_no_larger() -> None:
    found = magnitude(reduce_("sum", T, 0, 5, fn("mul", A, B), le(sym(T), 2)), BITS)

    assert found is None or found.sign == 0
