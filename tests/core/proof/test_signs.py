"""Comparisons with 0 that signs decide, and integers that have one value where a bound is met."""

from __future__ import annotations

import pytest

from argus.core import algebra
from argus.core.algebra import add, const, floordiv, le, lt, sym
from argus.core.index import Cond, Symbol
from argus.core.proof.values.held.edges import at_edges
from argus.core.proof.values.held.signs import decided_by_sign
from argus.core.values.expr import Compare, choose, compare, element, fn, infinity, reduce_

N, V = Symbol("N", "size", 0), Symbol("v", "fresh", 0)
X = element("X", sym(V))
WEIGHTS = reduce_("sum", V, 0, sym(N), fn("exp", X))


def some(cond: Cond) -> bool:
    """Whether it is known where there are elements."""
    return cond is algebra.TRUE or cond is lt(0, sym(N))


def nothing(cond: Cond) -> bool:
    """Whether it is known anyway."""
    return cond is algebra.TRUE


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        (compare("==", WEIGHTS, 0), False),
        (compare("<=", WEIGHTS, 0), False),
        (compare("<", 0, WEIGHTS), True),
        (compare("==", 0, WEIGHTS), False),
        (compare("==", WEIGHTS, 1), None),
        (compare("==", reduce_("sum", V, 0, sym(N), X), 0), None),
        (compare("==", fn("sub", WEIGHTS, 1), 0), None),
        (compare("==", fn("exp", fn("sub", infinity(-1), X)), 0), None),
    ],
)
def test_the_sign_of_a_sum_decides_its_comparison_with_0(test: Compare, wanted: bool | None) -> None:
    assert decided_by_sign(test, some) is wanted


def test_a_sum_over_what_may_be_nothing_is_not_above_0() -> None:
    assert decided_by_sign(compare("==", WEIGHTS, 0), nothing) is None


def test_what_has_no_value_is_not_decided() -> None:
    lost = fn("exp", fn("sub", X, reduce_("max", V, 0, sym(N), X)))  # the maximum of nothing is -inf
    assert decided_by_sign(compare("==", lost, 0), nothing) is None


BLOCKS = floordiv(add(sym(N), 7), 8)


def holds(cond: Cond) -> bool:
    return cond in (algebra.eq(BLOCKS, const(1)), algebra.eq(sym(N), const(5)))


def test_a_quotient_is_the_bound_that_it_meets() -> None:
    value = element("X", add(algebra.mul(BLOCKS, 8), sym(V)))

    assert at_edges(holds, (le(BLOCKS, 1),), value) == (element("X", add(sym(V), 8)),)
    assert at_edges(holds, (le(BLOCKS, 2),), value) == (value,)
    assert at_edges(lambda _: False, (le(BLOCKS, 1),), value) == (value,)


def test_conditions_and_ends_of_ranges_are_at_the_bound_too() -> None:
    value = reduce_("sum", V, 0, sym(N), choose(lt(sym(V), BLOCKS), X, 0))
    five = reduce_("sum", V, 0, const(5), X)
    here, other = at_edges(holds, (le(BLOCKS, 1),), value, five)

    assert here is reduce_("sum", V, 0, const(5), choose(lt(sym(V), 1), X, 0))
    assert other is five
