"""Stores of a tile's rows that hold one value over the row: it is theirs for each number of the tile."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.proof.values.held.in_steps import common_conditions, over_shared_rows
from argus.core.proof.values.held.outputs import Stored
from argus.core.proof.values.held.terms import chosen
from argus.core.values.expr import Choose, Element, Expr, Number, element, expr
from argus.core.walk import evaluate, symbols
from argus.core.walk import substitute as substitute_index

N = algebra.sym(Symbol("N", "size", 0))
Y, X = (algebra.sym(Symbol(name, "fresh", 0)) for name in "yx")
T = algebra.sym(Symbol("t", "block", 0))
ROW = algebra.sym(Symbol("y~row", "fresh", 0))
STEP, ROWS = 2, 4
"""Outputs of a row, and rows of a tile."""


def stored(row: int, of_class: int, first: int, last: Index | int) -> Stored:
    """Row 4 t + `row` of the input, moved by `first`, where that lies before `last`; stored at 8 t + 2 `row` + a."""
    at = algebra.add(algebra.mul(T, ROWS), row + first)
    inside = algebra.all_of((algebra.le(0, at), algebra.le(at, last)))
    value = chosen(inside, element("X", at, X), expr(0))
    place = algebra.add(algebra.mul(T, STEP * ROWS), STEP * row + of_class)
    return Stored(value, (algebra.eq(place, Y), algebra.le(32 * row, X)))


def read(of: Expr, names: dict[Symbol, int]) -> tuple[int, ...] | None:
    """The coordinates of the element that an expression is; None where it is 0."""
    match of:
        case Choose(test=test, then=then, other=other):
            assert isinstance(test, Cond)
            return read(then if holds(test, names) else other, names)
        case Element(at=at):
            return tuple(int(number(each, names)) for each in at)
        case Number(value=value):
            assert value == Fraction(0)
            return None
        case _:
            raise AssertionError(of)


def number(of: Index, names: dict[Symbol, int]) -> int:
    return int(evaluate(of, {symbol: names[symbol] for symbol in symbols(of)}))


def holds(of: Cond, names: dict[Symbol, int]) -> bool:
    return bool(evaluate(of, {symbol: names[symbol] for symbol in symbols(of)}))


def cases(first: int, last: Index | int) -> Iterator[tuple[int, int, Stored]]:
    for row in range(ROWS):
        for of_class in range(STEP):
            yield row, of_class, stored(row, of_class, first, last)


def test_rows_of_a_tile_that_read_alike_are_one_case_of_each_class() -> None:
    found = over_shared_rows([case for *_, case in cases(0, N)], [Y, X])

    assert [each.names for each in found] == [
        {Y.symbol: algebra.add(algebra.mul(ROW, STEP), of_class)} for of_class in range(STEP)
    ]
    for of_class, each in enumerate(found):  # what is said to hold does so in the first row of the first tile, too
        here = {ROW.symbol: 0, Y.symbol: of_class, X.symbol: 0, N.symbol: 9}
        assert all(holds(cond, here) for cond in each.case.given)


@pytest.mark.parametrize("last", [1, 6, 7, 8, 9, 10, 11, 30])
@pytest.mark.parametrize("first", [-5, -4, -3, -2, -1, 0, 1, 2])
def test_the_value_of_a_row_is_that_of_the_tile_that_stores_it(first: int, last: int) -> None:
    """For each tile and row: what is read, and all that is said to hold. Bounds are numbers, which are rounded."""
    renamed = 0
    for number_of_row, of_class, case in cases(first, last):
        (found,) = over_shared_rows([case, case], [Y, X])
        renamed += bool(found.names)
        for tile in range(12):
            place = STEP * (ROWS * tile + number_of_row) + of_class
            here = {T.symbol: tile, X.symbol: 32 * number_of_row, Y.symbol: place, ROW.symbol: place // STEP}
            assert all(number(by_row, here) == place for by_row in found.names.values())
            assert all(holds(cond, here) for cond in found.case.given)
            assert read(found.case.value, here) == read(case.value, here)
    assert bool(renamed) == (first <= last)  # or all of them hold 0


def test_a_case_alone_stays_as_it_is() -> None:
    assert over_shared_rows([stored(1, 0, 0, 9)], [Y, X]) == []


def test_a_number_that_may_be_negative_is_no_tile_s() -> None:
    """The row that it gave would be one, too, and what is proved is proved of rows from 0 on."""
    loop = algebra.sym(Symbol("i", "loop"))
    at = algebra.mul(loop, ROWS)
    case = Stored(element("X", at, X), (algebra.eq(algebra.mul(loop, STEP * ROWS), Y),))

    (found,) = over_shared_rows([case, case], [Y, X])

    assert found.case == case


def test_what_holds_in_all_cases_is_the_weakest_bound() -> None:
    one, two = (Stored(expr(0), (algebra.le(n, X), algebra.le(X, n + 9), algebra.eq(Y, n))) for n in (3, 5))

    found = common_conditions([one, two])

    assert set(found) == {algebra.le(3, X), algebra.le(X, 14)}
    assert common_conditions([one]) == one.given
    assert substitute_index(found[0], {X.symbol: algebra.const(4)}) is algebra.TRUE
