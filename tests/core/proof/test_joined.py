"""Values of one shape as one: integers that differ, conditions of several parts, runs that adjoin, reversed tables."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from argus.core import algebra
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.proof.values.held.folds import Range, lattice, reduction
from argus.core.proof.values.held.joined import of_numbers
from argus.core.proof.values.held.tables import Tables
from argus.core.values.expr import CompareOp, Expr, Fn, Reduce, choose, compare, element, expr, fn, infinity, reduce_
from argus.core.values.rewriting import elements, nodes

GROUP = Symbol("group", "agent", 0, 2)
ROW, J, N = (Symbol(name, "fresh", 0) for name in "ijn")
group, i, j, n = (algebra.sym(each) for each in (GROUP, ROW, J, N))


def row(at: Index) -> Expr:
    return element("X", at)


def masked(at: Index, *conds: Cond) -> Expr:
    return choose(algebra.all_of(conds), row(at), infinity(-1))


def after(number: Index | int) -> Index:
    return algebra.add(algebra.mul(number, 64), i)


OPS: tuple[CompareOp, ...] = ("==", "<=", "==")
JOINED: dict[str, tuple[list[Expr], Expr | None]] = {
    "places": ([row(after(each)) for each in range(3)], row(after(group))),
    "conditions of two parts": (
        [masked(after(each), algebra.lt(after(each), n), algebra.lt(i, j)) for each in range(3)],
        masked(after(group), algebra.lt(after(group), n), algebra.lt(i, j)),
    ),
    "conditions whose parts come in another order": (
        [masked(i, algebra.lt(after(each), n), algebra.lt(j, algebra.add(n, each))) for each in range(3)],
        masked(i, algebra.lt(after(group), n), algebra.lt(j, algebra.add(n, group))),
    ),
    "comparisons of values": (
        [choose(compare("==", row(after(each)), expr(0)), expr(1), row(after(each))) for each in range(3)],
        choose(compare("==", row(after(group)), expr(0)), expr(1), row(after(group))),
    ),
    "places that are no affine function": ([row(after(each)) for each in (0, 1, 3)], None),
    "one condition more": (
        [masked(i, algebra.lt(i, n)), masked(i, algebra.lt(i, n), algebra.lt(i, j)), masked(i, algebra.lt(i, n))],
        None,
    ),
    "unlike comparisons": (
        [choose(compare(op, row(i), expr(0)), expr(1), row(i)) for op in OPS],
        None,
    ),
    "unlike functions": ([fn("exp", row(i)), fn("log", row(i)), fn("exp", row(i))], None),
}


@pytest.mark.parametrize("name", JOINED)
def test_values_of_groups_are_one_where_their_integers_are_affine_in_the_number(name: str) -> None:
    values, expected = JOINED[name]
    assert of_numbers(values, GROUP, 0) is expected


def total(high: int, first: int) -> Expr:
    """The sum of a run of this length from a first element on, in a block of 16."""
    return reduce_("sum", J, 0, high, row(algebra.add(algebra.mul(i, 16), j, first)))


@pytest.mark.parametrize("parts", [(12, 4), (4, 12), (8, 4, 4)])
def test_runs_that_adjoin_are_one(parts: tuple[int, ...]) -> None:
    first, body = 0, expr(0)
    for length in parts:
        body = total(length, first) if first == 0 else fn("add", body, total(length, first))
        first += length
    assert reduction("sum", [Range(ROW, n)], body) is reduction("sum", [Range(ROW, n)], total(16, 0))


@pytest.mark.parametrize(("one", "two"), [((12, 0), (4, 11)), ((12, 0), (4, 13)), ((4, 12), (12, 0))])
def test_runs_that_do_not_adjoin_stay_two(one: tuple[int, int], two: tuple[int, int]) -> None:
    body = fn("add", total(*one), total(*two))
    assert reduction("sum", [Range(ROW, n)], body) is not reduction("sum", [Range(ROW, n)], total(16, 0))


def test_a_table_and_its_reverse_have_one_symbol() -> None:
    tables, table = Tables(), np.array([[0, 2], [4, 10]])
    assert algebra.add(tables.index(table), tables.index(10 - table)) is algebra.const(10)
    assert len(tables.known) == 1


def tap(r: int, s: int) -> Expr:
    """What a window of padded inputs adds for one tap, whose conditions its place decides in part."""
    at = algebra.add(i, r - 1), algebra.add(j, s)
    inside = [algebra.le(0, at[0]), algebra.lt(at[0], n), algebra.lt(at[1], n)]
    return fn(
        "mul", element("F", algebra.const(r), algebra.const(s)), choose(algebra.all_of(inside), row2(*at), expr(0))
    )


def row2(*at: Index) -> Expr:
    return element("Z", *at)


def plus_of(*terms: Expr) -> Expr:
    found, *others = terms
    for each in others:
        found = fn("add", found, each)
    return found


@pytest.mark.parametrize(("rows", "columns"), [(3, 1), (1, 3), (3, 3), (2, 5)])
@pytest.mark.parametrize("backwards", [False, True])
def test_taps_that_are_spelled_out_are_sums_over_both_axes(rows: int, columns: int, backwards: bool) -> None:
    taps = [tap(r, s) for r in range(rows) for s in range(columns)]
    found = reduction("sum", [], plus_of(*(reversed(taps) if backwards else taps)))

    ranges = [each.high for each in nodes(found) if isinstance(each, Reduce)]
    assert isinstance(found, Reduce)
    assert prod(each.value for each in ranges if isinstance(each, Const)) == rows * columns


@pytest.mark.parametrize(
    "taps",
    [
        [(0, 0), (0, 1), (1, 0), (1, 2)],
        [(0, 0), (0, 1), (1, 0), (1, 0)],
        [(0, 0), (1, 1), (2, 2), (2, 3)],
    ],
)
def test_taps_at_other_places_stay_as_they_are(taps: list[tuple[int, int]]) -> None:
    body = plus_of(*(tap(*each) for each in taps))
    assert reduction("sum", [], body) is body


def test_a_sum_of_products_with_sums_is_one_of_each_term_whose_factors_come_out() -> None:
    inner = Symbol("k", "fresh", 0)
    factor, place = element("A", i), algebra.sym(J)
    products = fn("mul", factor, reduce_("sum", inner, algebra.const(0), n, element("X", place, algebra.sym(inner))))
    found = reduction("sum", [Range(J, algebra.const(8))], fn("add", products, element("Z", place)))

    terms = found.args if isinstance(found, Fn) and found.name == "add" else ()
    assert len(terms) == 2
    (scaled,) = (each for each in terms if isinstance(each, Fn))
    (sums,) = (each for each in scaled.args if each is not factor)
    assert scaled.name == "mul"
    assert isinstance(sums, Reduce)
    assert {each.tensor for each in elements(sums)} == {"X"}


def test_nested_sums_over_runs_that_adjoin_are_one() -> None:
    """The runs are of the inner variable, and the outer ones alike."""

    def over_rows(high: int, first: int) -> Expr:
        return reduce_("sum", ROW, 0, n, total(high, first))

    whole = reduction("sum", [], fn("add", over_rows(12, 0), over_rows(4, 12)))
    assert whole is reduction("sum", [], over_rows(16, 0))
    apart = reduction("sum", [], fn("add", over_rows(12, 0), over_rows(4, 13)))
    assert apart is not reduction("sum", [], over_rows(16, 0))


@pytest.mark.parametrize("name", ["mul", "div"])
def test_a_sum_within_a_product_or_above_a_quotient_is_one_over_both_ranges(name: str) -> None:
    inner = Symbol("k", "fresh", 0)
    sums, scale = reduce_("sum", inner, 0, n, element("X", j, algebra.sym(inner))), element("A", j)
    found = reduction("sum", [Range(J, algebra.const(8))], fn(name, sums, scale))

    assert isinstance(found, Reduce)
    assert isinstance(found.body, Reduce)
    assert isinstance(found.body.body, Fn)
    assert {found.high, found.body.high} == {n, algebra.const(8)}
    assert found.body.body.name == name
    assert {each.tensor for each in found.body.body.args if each in elements(each)} == {"X", "A"}


def test_a_sum_below_a_quotient_stays_there() -> None:
    inner = Symbol("k", "fresh", 0)
    sums = reduce_("sum", inner, 0, n, element("X", j, algebra.sym(inner)))
    found = reduction("sum", [Range(J, algebra.const(8))], fn("div", element("A", j), sums))
    assert isinstance(found, Reduce)
    assert isinstance(found.body, Fn)


def test_a_factor_alone_comes_out_of_the_sum_of_as_many() -> None:
    """Of the two terms, the second has no factor with the variable."""
    inner = Symbol("k", "fresh", 0)
    outer = reduce_("sum", inner, 0, n, element("X", algebra.sym(inner)))
    body = fn("add", fn("mul", element("A", j), outer), fn("mul", element("B", i), outer))
    found = reduction("sum", [Range(J, algebra.const(8))], body)

    terms = found.args if isinstance(found, Fn) else ()
    counts = [each for term in terms for each in nodes(term) if isinstance(each, Reduce) and each.body is expr(1)]
    assert len(terms) == 2
    assert len(counts) == 1


@pytest.mark.parametrize(
    ("extents", "steps"),
    [((4,), ((1, 0),)), ((4, 3), ((1, 0), (0, 1))), ((2, 5), ((0, 1), (3, 0))), ((2, 3, 4), ((1, 0), (0, 1), (7, 7)))],
)
def test_points_of_nested_ranges_have_their_extents_and_steps(
    extents: tuple[int, ...], steps: tuple[tuple[int, int], ...]
) -> None:
    numbers = np.indices(extents[::-1]).reshape(len(extents), -1)[::-1]
    found = lattice(np.array(steps).T @ numbers)
    assert found is not None
    assert tuple(extent for extent, _ in found) == extents
    assert tuple(tuple(step.tolist()) for _, step in found) == steps


def test_points_of_no_ranges_have_none() -> None:
    assert lattice(np.array([[0, 1, 3]])) is None
    assert lattice(np.array([[0, 1, 2, 3, 4, 6], [0, 0, 0, 1, 1, 1]])) is None
