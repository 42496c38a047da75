"""Integers as numbers of f32: an extremum of places is one that f32 has only if all within its range are."""

from __future__ import annotations

import pytest

from argus.core import algebra
from argus.core.dtype import f32
from argus.core.index import Cond, Symbol
from argus.core.proof.values.held.rounded_integers import as_float, computed
from argus.core.values.expr import ReduceOp, choose, compare, element, expr, reduce_
from argus.core.values.numbers import ROUNDED
from argus.core.walk import evaluate

PLACE = Symbol("j", "fresh", 0)
MOST = 1 << 24


def holds(cond: Cond) -> bool:
    """Whether a condition holds for places at the ends of the ranges below, and beside them."""
    places = (0, 1, 7, MOST - 2, MOST - 1, MOST, MOST + 1, 2 * MOST)
    return all(bool(evaluate(cond, {PLACE: each})) for each in places)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize(("low", "high", "exact"), [(0, MOST, True), (0, MOST + 1, False), (7, MOST, True)])
def test_an_extremum_of_places_is_exact_if_those_of_its_range_are(
    op: ReduceOp, low: int, high: int, exact: bool
) -> None:
    found = reduce_(op, PLACE, algebra.const(low), algebra.const(high), expr(algebra.sym(PLACE)))
    rounded = as_float(found, f32, holds)
    assert (rounded is found) is exact
    assert exact or getattr(rounded, "name", "") == f"{ROUNDED}f32"


@pytest.mark.parametrize(("below", "exact"), [(True, True), (False, False)])
def test_each_branch_of_a_choice_is_exact_where_its_test_holds(below: bool, exact: bool) -> None:
    place = algebra.sym(PLACE)
    test = algebra.lt(place, MOST)
    found = choose(test if below else algebra.negate(test), expr(place), expr(0))
    assert (as_float(found, f32, holds) is found) is exact


@pytest.mark.parametrize(("operation", "exact"), [("add", True), ("mul", False), ("sub", False)])
def test_sums_of_counts_alone_are_counts_wherever_they_are_rounded(operation: str, exact: bool) -> None:
    size, test = Symbol("N", "size", 0), compare("<", element("X", algebra.sym(PLACE)), 0)
    count = reduce_("sum", PLACE, algebra.const(0), algebra.sym(size), choose(test, expr(1), expr(0)))

    found = computed(operation, (count, count), f32, holds)

    assert (getattr(found, "name", "") == operation) is exact
    assert exact or getattr(found, "name", "") == f"{ROUNDED}f32"
