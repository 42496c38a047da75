"""Supertiles, by enumeration of small grids: the lemma, each of its facts, and grids over row and column."""

from __future__ import annotations

from itertools import product
from typing import cast

import numpy as np
import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.algebra import add, mul, sym
from argus.core.dsl.handles import Int
from argus.core.dsl.sync.tile_orders import super_tiled
from argus.core.index import Cond, Index, Symbol
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.outputs.supertiles import Supertiles, supertile_lemmas, supertiles, without_row
from argus.core.proof.outputs.tile_index import tile_grid
from argus.core.walk import evaluate
from tests.core.proof.rings import Drained, ring

B, X, Y = Symbol("tile", "block", 0), Symbol("rows", "size", 1), Symbol("columns", "size", 1)
COUNT = mul(sym(X), sym(Y))
GRIDS = tuple(product(range(1, 9), range(1, 9)))
heights = pytest.mark.parametrize("height", [2, 3, 4])


def place(height: int) -> tuple[Index, Index]:
    """Row and column of a number taken in bands, as the language has it."""
    made = super_tiled(height)(Int(sym(B)), (Int(sym(X)), Int(sym(Y))))
    row, column = (cast("Int", part).node for part in made)
    return row, column


def found(height: int) -> Supertiles:
    row, column = place(height)
    made = supertiles(B, COUNT, (row, column))
    assert made is not None
    return made


def at(expression: Index, rows: int, columns: int) -> list[int]:
    """Its value for each number of the grid."""
    return [
        int(cast("int", evaluate(expression, {B: number, X: rows, Y: columns}))) for number in range(rows * columns)
    ]


@pytest.mark.parametrize("height", [1, 2, 3, 4])
def test_the_lemma_by_enumeration(height: int) -> None:
    """The formulas of the lemma's text, computed plainly."""
    for rows, columns in GRIDS:
        tiles: list[tuple[int, int]] = []
        for number in range(rows * columns):
            band = number // (height * columns)
            high = min(height, rows - height * band)
            inside = number - height * band * columns
            assert height * band < rows
            assert high >= 1
            tiles.append((height * band + inside % high, inside // high))
        assert sorted(tiles) == sorted(product(range(rows), range(columns)))


@heights
def test_rows_begun_at_another_one_are_supertiles_too(height: int) -> None:
    """With `number % high` for `inside % high`: the facts and the tiles, by enumeration."""
    row, column = place(height)
    plain, own = found(height), sym(B)
    turned = add(plain.start, algebra.sub(own, mul(plain.high, algebra.floordiv(own, plain.high))))
    made = supertiles(B, COUNT, (turned, column))
    assert made is not None
    assert made.row is turned
    assert made.row is not row
    for rows, columns in GRIDS:
        tiles = list(zip(at(turned, rows, columns), at(column, rows, columns), strict=True))
        assert sorted(tiles) == sorted(product(range(rows), range(columns)))
        for number, (fact, _) in product(range(rows * columns), made.facts):
            assert evaluate(fact, {B: number, X: rows, Y: columns})


@heights
def test_super_tiled_is_one_to_one(height: int) -> None:
    row, column = place(height)
    for rows, columns in GRIDS:
        tiles = list(zip(at(row, rows, columns), at(column, rows, columns), strict=True))
        assert sorted(tiles) == sorted(product(range(rows), range(columns)))


@heights
def test_supertile_terms_match_the_lemma(height: int) -> None:
    row, column = place(height)
    made = found(height)
    assert made.row is row
    assert made.column is column
    assert made.divisor is mul(sym(Y), height)
    assert {made.rows, made.columns} == {sym(X), sym(Y)}
    assert made.columns is sym(Y)


@heights
def test_each_fact_of_the_lemma_by_enumeration(height: int) -> None:
    made = found(height)
    assert len(made.facts) == 3
    for fact, divisors in made.facts:
        for rows, columns in GRIDS:
            for number in range(rows * columns):
                env = {B: number, X: rows, Y: columns}
                assert all(cast("int", evaluate(divisor, env)) >= 1 for divisor in divisors)
                assert evaluate(fact, env), (rows, columns, number)


@heights
def test_each_fact_is_not_trivial(height: int) -> None:
    """The number just beyond the grid breaks every fact somewhere, so none holds of all numbers."""
    made = found(height)
    for fact, divisors in made.facts:
        broken = False
        for rows, columns in GRIDS:
            env = {B: rows * columns, X: rows, Y: columns}
            defined = all(cast("int", evaluate(divisor, env)) >= 1 for divisor in divisors[:1])
            broken = broken or not (defined and _holds(fact, env))
        assert broken


def _holds(fact: Cond, env: dict[Symbol, int]) -> bool:
    try:
        return bool(evaluate(fact, env))
    except ZeroDivisionError:
        return False


def test_other_numbers_are_not_supertiles() -> None:
    row, column = place(2)
    own = sym(B)
    assert supertiles(B, add(COUNT, 1), (row, column)) is None
    assert supertiles(B, mul(sym(X), sym(X)), (row, column)) is None
    assert supertiles(B, COUNT, (algebra.floordiv(own, sym(Y)), algebra.mod(own, sym(Y)))) is not None
    assert supertiles(B, COUNT, (algebra.floordiv(own, add(sym(Y), 1)),)) is None
    assert supertiles(B, COUNT, (own,)) is None


def test_facts_are_only_about_grid_coordinates() -> None:
    row, column = place(3)
    assert [fact for fact, _ in supertile_lemmas([(B, COUNT)], (row, column))] == [fact for fact, _ in found(3).facts]
    assert list(supertile_lemmas([(B, sym(X))], (row, column))) == []


@heights
def test_a_base_is_a_multiple_of_the_row_plus_a_rest(height: int) -> None:
    row, column = place(height)
    made = found(height)
    factor, rest = without_row(add(mul(row, 64), mul(column, 5), 3), made)
    assert factor == 64
    assert rest is add(mul(column, 5), 3)


@heights
def test_a_supertiled_grid_has_rows_and_columns(height: int) -> None:
    row, column = place(height)
    kernel = evolve(ring(Drained()), blocks=(B,), grid=(COUNT,))
    table = np.zeros((1, 1), np.int64)
    grid = tile_grid(kernel, (Separable(mul(row, 64), table), Separable(mul(column, 16), table)))
    assert list(grid.counts.values()) == [sym(X), sym(Y)]
    rows, columns = grid.counts
    assert grid.places[0].base is mul(sym(rows), 64)
    assert grid.places[1].base is mul(sym(columns), 16)


@heights
def test_another_use_of_the_number_leaves_the_grid_unchanged(height: int) -> None:
    row, column = place(height)
    kernel = evolve(ring(Drained()), blocks=(B,), grid=(COUNT,))
    table = np.zeros((1, 1), np.int64)
    grid = tile_grid(kernel, (Separable(add(mul(row, 64), sym(B)), table), Separable(mul(column, 16), table)))
    assert list(grid.counts) == [B]


def test_quotient_and_remainder_are_two_coordinates() -> None:
    kernel = evolve(ring(Drained()), blocks=(B,), grid=(COUNT,))
    table = np.zeros((1, 1), np.int64)
    own = sym(B)
    places = (Separable(algebra.floordiv(own, sym(Y)), table), Separable(algebra.mod(own, sym(Y)), table))
    grid = tile_grid(kernel, places)
    assert sorted(grid.counts.values(), key=str) == sorted((sym(X), sym(Y)), key=str)
    for rows, columns in GRIDS:
        tiles = set(zip(at(places[0].base, rows, columns), at(places[1].base, rows, columns), strict=True))
        assert tiles == set(product(range(rows), range(columns)))


@pytest.mark.share(3)
@heights
def test_pairs_of_a_divisor_that_does_not_divide_the_count(height: int) -> None:
    """Quotient and remainder by height * columns: the guard holds for exactly the pairs that some number has."""
    kernel = evolve(ring(Drained()), blocks=(B,), grid=(COUNT,))
    table, own, divisor = np.zeros((1, 1), np.int64), sym(B), mul(sym(Y), height)
    places = (Separable(algebra.floordiv(own, divisor), table), Separable(algebra.mod(own, divisor), table))
    grid = tile_grid(kernel, places)
    first, second = grid.counts
    for rows, columns in GRIDS:
        sizes = {X: rows, Y: columns}
        most = [int(cast("int", evaluate(count, sizes))) for count in grid.counts.values()]
        pairs = [
            pair
            for pair in product(*map(range, most))
            if evaluate(grid.guard, {**sizes, first: pair[0], second: pair[1]})
        ]
        assert pairs == [divmod(number, height * columns) for number in range(rows * columns)]
