"""Expressions at the elements at which their branches are taken: the same value at each of them."""

from __future__ import annotations

import numpy as np

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.proof.values.held.settled import of_taken_branches
from argus.core.proof.values.held.tables import BoolArray, Tables
from argus.core.values.expr import Choose, Expr, choose, element, expr

SHAPE = 8, 4
THREADS, VALUES = np.indices(SHAPE)
FIRST: BoolArray = THREADS < 4
K = algebra.sym(Symbol("k", "loop", 0))


def of_group(tables: Tables, mask: BoolArray, then: Expr, other: Expr) -> Expr:
    return choose(algebra.eq(tables.index(mask.astype(np.int64)), 1), then, other)


def load(*at: Index) -> Expr:
    return element("X", *at)


def same_at_each_element(tables: Tables, one: Expr, two: Expr) -> bool:
    places = ((THREADS[at : at + 1, v : v + 1], VALUES[at : at + 1, v : v + 1]) for at in range(8) for v in range(4))
    return all(tables.at(one, each) is tables.at(two, each) for each in places)


def test_a_table_is_a_number_where_a_branch_is_taken() -> None:
    tables = Tables()
    group, row = tables.index(np.where(FIRST, 0, 1)), tables.index(THREADS)
    root = of_group(tables, FIRST, load(row, algebra.const(0)), choose(algebra.eq(group, 0), expr(7), load(row, group)))

    found = of_taken_branches(tables, root)

    assert same_at_each_element(tables, root, found)
    assert found is load(row, group)


def test_branches_that_differ_in_tables_are_one() -> None:
    tables = Tables()
    mine, theirs = tables.index(np.where(FIRST, VALUES, 0)), tables.index(np.where(FIRST, 1, VALUES))
    root = of_group(tables, FIRST, load(mine, K), load(theirs, K))

    assert of_taken_branches(tables, root) is load(tables.index(VALUES), K)


def test_branches_at_some_elements_alone_stay() -> None:
    tables = Tables()
    even: BoolArray = VALUES % 2 == 0
    inner = of_group(tables, even, load(tables.index(VALUES), K), expr(0))
    root = of_group(tables, FIRST, inner, of_group(tables, FIRST, expr(1), load(K, K)))

    found = of_taken_branches(tables, root)

    assert same_at_each_element(tables, root, found)
    assert isinstance(found, Choose)
    assert found.other is load(K, K)


def test_tables_that_are_equal_where_a_branch_is_taken_are_one() -> None:
    tables = Tables()
    row, other = tables.index(THREADS), tables.index(np.where(FIRST, THREADS, 9))
    root = of_group(tables, FIRST, load(row, algebra.add(other, 3)), expr(1))

    found = of_taken_branches(tables, root)

    assert same_at_each_element(tables, root, found)
    assert found is of_group(tables, FIRST, load(row, algebra.add(row, 3)), expr(1))
