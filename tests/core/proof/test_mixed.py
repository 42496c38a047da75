"""Tags in which symbols and coordinates do not come apart, against the expression's own value, element by element."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.proof.dataflow.piecewise_index import MAX_CASES, evaluate_piecewise
from argus.core.proof.dataflow.separable_index import (
    FragmentIndex,
    Piecewise,
    Separable,
    cases_of,
    distinct_columns,
    equal_indices,
    from_cases,
)
from argus.core.walk import IntArray, evaluate
from property_tests.depth import examples

THREAD, TILE, OTHER = Symbol("t", "thread", 0, 63), Symbol("b", "block", 0, 1000), Symbol("k", "loop", 0, 1000)
SHAPE = (16, 8)
ROWS = np.arange(16, dtype=np.int64)[:, None] + np.zeros(SHAPE, np.int64)
COLUMNS = np.arange(8, dtype=np.int64)[None, :] + np.zeros(SHAPE, np.int64)
M = Separable(algebra.mul(algebra.sym(TILE), 16), ROWS)
K = Separable(algebra.mul(algebra.sym(OTHER), 8), COLUMNS)
m, k = algebra.coord(0), algebra.coord(1)


def table(found: FragmentIndex, env: dict[Symbol, int]) -> IntArray:
    cases, place = cases_of(found)
    return np.array([int(np.asarray(evaluate(case, env))) for case in cases], np.int64)[place]


def expected(expression: Index, env: dict[Symbol, int]) -> IntArray:
    coords = [env[TILE] * 16 + ROWS, env[OTHER] * 8 + COLUMNS]
    threads = np.arange(SHAPE[0], dtype=np.int64)[:, None]
    return np.broadcast_to(np.asarray(evaluate(expression, {**env, THREAD: threads}, coords)), SHAPE)


def indices() -> st.SearchStrategy[Index]:
    leaves = st.one_of(
        st.sampled_from([m, k, algebra.sym(TILE), algebra.sym(THREAD)]), st.integers(0, 9).map(algebra.const)
    )

    def grown(inner: st.SearchStrategy[Index]) -> st.SearchStrategy[Index]:
        pairs = st.tuples(inner, inner)
        by = st.tuples(inner, st.sampled_from([2, 3, 4, 8]))
        return st.one_of(
            pairs.map(lambda p: algebra.add(*p)),
            pairs.map(lambda p: algebra.sub(*p)),
            by.map(lambda p: algebra.mul(*p)),
            by.map(lambda p: algebra.floordiv(*p)),
            by.map(lambda p: algebra.mod(*p)),
            pairs.map(lambda p: algebra.bit_xor(*p)),
            pairs.map(lambda p: algebra.bit_and(*p)),
            pairs.map(lambda p: algebra.bit_or(*p)),
            st.tuples(pairs, pairs).map(lambda p: algebra.pick(algebra.lt(*p[0]), *p[1])),
        )

    return st.recursive(leaves, grown, max_leaves=6)


@settings(max_examples=examples(150), deadline=None)
@given(indices(), st.integers(0, 9), st.integers(0, 9))
def test_each_element_has_the_value_of_the_expression(expression: Index, block: int, step: int) -> None:
    found = evaluate_piecewise(expression, (M, K), THREAD, SHAPE)
    env = {TILE: block, OTHER: step}

    if found is None:
        return
    assert (table(found, env) == expected(expression, env)).all()
    if isinstance(found, Piecewise):
        assert len(set(found.cases)) == len(found.cases)
        assert set(np.unique(found.table)) == set(range(len(found.cases)))


def test_a_swizzle_across_the_bits_of_a_tile_has_few_cases() -> None:
    found = evaluate_piecewise(algebra.bit_xor(algebra.floordiv(k, 4), algebra.mod(m, 8)), (M, K), THREAD, SHAPE)

    assert isinstance(found, Piecewise)
    assert len(found.cases) == 2 * 8


def test_bits_below_those_of_the_symbolic_part_come_apart() -> None:
    found = evaluate_piecewise(algebra.bit_xor(k, 5), (M, K), THREAD, SHAPE)

    assert isinstance(found, Separable)
    assert (found.table == COLUMNS ^ 5).all()


def test_too_many_different_elements_have_no_form() -> None:
    wide = (64, 64)
    row = Separable(algebra.sym(TILE), np.arange(64)[:, None] + np.zeros(wide, np.int64))
    column = Separable(algebra.sym(OTHER), np.arange(64)[None, :] + np.zeros(wide, np.int64))

    assert MAX_CASES < 64 * 64
    assert evaluate_piecewise(algebra.bit_xor(m, k), (row, column), THREAD, wide) is None


def test_components_agree_only_case_by_case() -> None:
    one = evaluate_piecewise(algebra.pick(algebra.lt(m, 20), m, k), (M, K), THREAD, SHAPE)
    two = evaluate_piecewise(algebra.pick(algebra.lt(m, 20), m, algebra.add(k, 1)), (M, K), THREAD, SHAPE)
    assert one is not None
    assert two is not None

    assert equal_indices(one, one) is algebra.TRUE
    goal = equal_indices(one, two)
    assert holds(goal, {TILE: 0, OTHER: 3})
    assert not holds(goal, {TILE: 1, OTHER: 3})


def holds(goal: Cond, env: dict[Symbol, int]) -> bool:
    return bool(evaluate(goal, env))


def test_columns_are_counted_once() -> None:
    rows, place = distinct_columns((ROWS % 2, COLUMNS % 3), (2, 3))

    assert rows.shape == (2, 6)
    assert (rows[0][place] == ROWS % 2).all()
    assert (rows[1][place] == COLUMNS % 3).all()


def test_cases_with_one_symbolic_part_are_a_table() -> None:
    b = algebra.sym(TILE)
    found = from_cases((algebra.add(b, 3), algebra.add(b, 7)), ROWS % 2)

    assert isinstance(found, Separable)
    assert found.base is b
    assert set(np.unique(found.table)) == {3, 7}
