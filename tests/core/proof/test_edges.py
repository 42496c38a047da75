"""Integers at the bounds that cases set: what is put in their place is what they are, wherever the cases hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

import pytest

from argus.core.algebra import add, const, floordiv, le, maximum, minimum, mul, sub, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.proof.values.held.edges import at_edges, with_fixed_quotients
from argus.core.values.expr import Element, element
from argus.core.walk import evaluate

A, B, M = Symbol("a", "size", 0), Symbol("b", "size", 0), Symbol("m", "block", 0)
A_, B_, M_ = sym(A), sym(B), sym(M)
QUOTIENT = floordiv(sub(A_, 3), 4)
OTHER = floordiv(B_, 4)
LEAST, GREATEST = minimum(QUOTIENT, add(B_, -1)), maximum(sub(B_, A_), 0)
Given = tuple[Cond, ...]


def points(given: Given) -> Iterator[Mapping[Symbol, int]]:
    """Small numbers that satisfy the conditions."""
    for numbers in product(range(9), repeat=3):
        at = dict(zip((A, B, M), numbers, strict=True))
        if all(evaluate(each, at) for each in given):
            yield at


def shown(given: Given) -> Callable[[Cond], bool]:
    """What holds at all of these numbers."""
    return lambda goal: all(evaluate(goal, at) for at in points(given))


CASES: list[tuple[Given, Given, Index]] = [
    ((le(3, A_),), (le(QUOTIENT, 0),), QUOTIENT),
    ((le(3, A_),), (le(add(QUOTIENT, M_), 0),), QUOTIENT),  # a sum of two that are at least 0
    ((le(3, A_), le(1, B_)), (le(LEAST, 0),), LEAST),
    ((le(3, A_), le(1, B_)), (le(LEAST, 0), le(GREATEST, 0)), add(LEAST, GREATEST)),
    ((le(A_, B_),), (le(GREATEST, M_), le(M_, GREATEST)), GREATEST),
    ((le(add(OTHER, 1), QUOTIENT),), (le(QUOTIENT, add(OTHER, 1)),), add(QUOTIENT, OTHER)),
    ((), (le(QUOTIENT, add(OTHER, 1)),), QUOTIENT),  # it may be less
    ((), (le(QUOTIENT, 0),), QUOTIENT),  # it may be -1
    ((), (le(add(QUOTIENT, M_), 0),), QUOTIENT),
    ((le(1, B_),), (le(LEAST, 0),), LEAST),
]


@pytest.mark.share(4)
@pytest.mark.parametrize(("given", "cases", "index"), CASES)
def test_what_is_put_in_place_is_what_it_is(given: Given, cases: Given, index: Index) -> None:
    every = (*given, *cases)
    assert any(points(every))
    for whole in (index, add(mul(index, 16), M_), sub(B_, index)):
        (found,) = at_edges(shown(every), cases, element("X", whole))
        assert isinstance(found, Element)
        assert all(evaluate(found.at[0], at) == evaluate(whole, at) for at in points(every))


def test_a_quotient_is_a_sum_of_symbols_where_both_are_0() -> None:
    given, case = le(3, A_), le(add(QUOTIENT, M_), 0)
    value = element("X", add(mul(QUOTIENT, 16), mul(M_, 16)))

    assert at_edges(shown((given, case)), (case,), value) == (element("X", const(0)),)
    assert at_edges(shown((case,)), (case,), value) == (value,)  # the quotient may be -1 and the block 1 or 0


def test_a_quotient_is_one_more_than_another() -> None:
    known = (le(add(OTHER, 1), QUOTIENT), le(QUOTIENT, add(OTHER, 1)))
    (found,) = at_edges(shown(known), known[1:], element("X", sub(QUOTIENT, OTHER)))

    assert found is element("X", const(1))


def test_without_asking_another_integer_is_put_in_place() -> None:
    case = le(add(QUOTIENT, M_), 0)
    (found,) = at_edges(lambda _: True, (case,), element("X", QUOTIENT))

    assert isinstance(found, Element)
    assert any(evaluate(found.at[0], at) != evaluate(QUOTIENT, at) for at in points((case,)))


def test_a_symbol_is_replaced_by_a_number_alone() -> None:
    value = element("X", A_)
    case = le(sub(A_, B_), 0)

    assert at_edges(lambda _: True, (case,), value) == (value,)


FIXED: list[tuple[Given, Index, Index]] = [
    ((le(3, A_), le(A_, 6)), QUOTIENT, const(0)),
    ((le(7, A_), le(A_, 10)), add(mul(QUOTIENT, 16), M_), add(M_, 16)),
    ((le(add(QUOTIENT, M_), 1), le(1, add(QUOTIENT, M_))), add(mul(QUOTIENT, 16), mul(M_, 16)), const(16)),
    ((le(add(QUOTIENT, M_), 1), le(1, add(QUOTIENT, M_))), add(mul(QUOTIENT, 16), M_), add(mul(QUOTIENT, 16), M_)),
    ((le(3, A_), le(A_, 7)), QUOTIENT, QUOTIENT),  # it may be 1
    ((le(A_, 6),), QUOTIENT, QUOTIENT),  # it may be -1
]


@pytest.mark.parametrize(("given", "index", "wanted"), FIXED)
def test_quotients_that_are_one_number_are_it(given: Given, index: Index, wanted: Index) -> None:
    assert any(points(given))
    assert with_fixed_quotients(shown(given), element("X", index)) == (element("X", wanted),)
    assert all(evaluate(index, at) == evaluate(wanted, at) for at in points(given))


def test_without_asking_a_quotient_is_taken_for_another() -> None:
    (found,) = with_fixed_quotients(lambda _: True, element("X", OTHER))

    assert found is element("X", const(0))
    assert any(evaluate(OTHER, at) for at in points(()))
