"""Sums of sums over equal ranges, over quotients, and over variables that have a range of their own."""

from __future__ import annotations

from itertools import permutations

import pytest

from argus.core.algebra import add, all_of, const, eq, floordiv, le, lt, mod, mul, sub, sym
from argus.core.index import Index, Symbol
from argus.core.values.display import show
from argus.core.values.equality import Equal, by_normal_forms
from argus.core.values.expr import Expr, Fn, choose, element, reduce_
from argus.core.values.normal import NormalForm, normal_form

N, K, V = Symbol("n", "fresh"), Symbol("k", "fresh"), Symbol("v", "fresh")
SIZE, M = sym(Symbol("S", "size", 1)), sym(Symbol("m", "fresh"))


def total(variable: Symbol, high: Index, body: Expr) -> Expr:
    return reduce_("sum", variable, 0, high, body)


def product(x: Index) -> Fn:
    return element("X", M, x) * element("W", sym(N), sym(K))


def are_equal(one: Expr, other: Expr) -> bool:
    return isinstance(by_normal_forms(one, other), Equal)


@pytest.mark.parametrize("size", [SIZE, const(8192), const(77)])
def test_equal_ranges_are_exchanged(size: Index) -> None:
    inside = total(N, size, total(K, size, product(sym(K))))
    first = total(K, size, element("X", M, sym(K)) * total(N, size, element("W", sym(N), sym(K))))
    assert are_equal(inside, first)
    assert are_equal(inside, total(K, size, total(N, size, product(sym(K)))))
    assert not are_equal(inside, total(N, size, total(K, size, product(sym(N)))))


@pytest.mark.parametrize("size", [SIZE, const(16)])
def test_three_equal_ranges_have_one_order(size: Index) -> None:
    body = element("X", M, sym(N), sym(K)) * element("W", sym(V), sym(K)) * element("B", sym(V))
    orders = [
        total(one, size, total(two, size, total(three, size, body))) for one, two, three in permutations((N, K, V))
    ]
    assert all(are_equal(orders[0], each) for each in orders)
    inside = total(V, size, element("W", sym(V), sym(K)) * element("B", sym(V)))
    assert are_equal(orders[0], total(N, size, total(K, size, element("X", M, sym(N), sym(K)) * inside)))
    assert not are_equal(orders[0], total(N, size, total(K, size, element("X", M, sym(K), sym(N)) * inside)))


@pytest.mark.parametrize("number", [2, 3, 5])
@pytest.mark.parametrize("offset", [0, 1])
def test_numbers_with_one_remainder_are_counted_by_their_quotients(number: int, offset: int) -> None:
    v, end = sym(V), mul(SIZE, number)
    place = floordiv(add(v, offset), number)
    some = choose(eq(mod(add(v, offset), number), 0), element("X", place), 0)
    found = total(V, sub(end, offset) if offset else end, some)
    every = total(K, SIZE, element("X", sym(K)))
    first = element("X", const(0))
    assert are_equal(found, every - first if offset else every)
    assert not are_equal(found, every if offset else every - first)


def test_places_that_are_quotients_occur_as_often_as_the_divisor_says() -> None:
    halves = total(V, mul(SIZE, 2), element("X", floordiv(sym(V), 2)))
    every = total(K, SIZE, element("X", sym(K)))
    assert are_equal(halves, every * 2)
    assert not are_equal(halves, every)


def test_digits_are_two_sums() -> None:
    digits = total(V, mul(SIZE, 3), element("X", floordiv(sym(V), 3), mod(sym(V), 3)))
    terms = [total(K, SIZE, element("X", sym(K), const(digit))) for digit in range(3)]
    assert are_equal(digits, terms[0] + terms[1] + terms[2])
    assert not are_equal(digits, terms[0] + terms[1] + terms[1])
    # Tests of digits, too.
    place = sub(mod(sym(V), 3), 1)
    some = choose(all_of((le(0, place), lt(place, 1))), element("X", floordiv(sym(V), 3), mod(sym(V), 3)), 0)
    assert are_equal(total(V, const(12), some), total(K, const(4), element("X", sym(K), const(1))))
    # A place that names the variable itself is no digit.
    both = total(V, mul(SIZE, 3), element("X", floordiv(sym(V), 3), sym(V)))
    assert not are_equal(both, terms[0] + terms[1] + terms[2])


def test_a_variable_with_a_range_has_the_sum_of_one_without() -> None:
    """A test of the variable less one is not decided by what is known of the variable."""
    ranged = Symbol("y", "fresh", 0)

    def shifted(variable: Symbol) -> Expr:
        at = sub(sym(variable), 1)
        return total(variable, const(9), choose(all_of((le(0, at), lt(at, 7))), element("X", at), 0))

    forms = [normal_form(shifted(each)) for each in (ranged, V)]
    values = [each.value for each in forms if isinstance(each, NormalForm)]
    assert len(values) == len(forms)
    assert values[0] is values[1]
    assert "X[-1]" not in show(values[0])  # pyright: ignore[reportArgumentType]  # a polynomial
