"""Combinations of integers that satisfy a relation are not checked singly; all others are."""

from __future__ import annotations

import numpy as np
import pytest

from argus.core.algebra import add, eq, floordiv, le, sym
from argus.core.index import Cond, Symbol
from argus.interp.values.joint_relations import needs_check
from argus.interp.values.sets import MISSING, UNTRACKED, Sets

M, N, SIZE = Symbol("m", "fresh", None, None), Symbol("n", "fresh", None, None), Symbol("S", "size", 1, None)


def selected(cond: Cond, *columns: tuple[int, int], size: int = 3) -> list[bool]:
    kinds = np.array(columns, np.int64).reshape(-1, 2).T
    return needs_check(cond, (M, N), kinds, {SIZE: size}, {}).tolist()


def test_integers_are_compared_together() -> None:
    cond = le(sym(M), add(sym(N), sym(SIZE)))
    assert selected(cond, (0, 0), (4, 0), (7, 4), (8, 4)) == [False, True, False, True]
    assert selected(cond) == []
    assert selected(le(sym(SIZE), 3), (1, 2), (3, 4)) == [False, False]
    assert selected(le(sym(SIZE), 2), (1, 2), (3, 4)) == [True, True]


@pytest.mark.parametrize("other", [MISSING, UNTRACKED, Sets().of([1, 2])])
def test_combinations_with_other_components_are_checked(other: int) -> None:
    assert selected(le(sym(M), sym(N)), (0, 0), (other, 0), (0, other), (0, 1)) == [False, True, True, False]
    assert selected(le(sym(M), sym(N)), (other, other)) == [True]


def test_all_are_checked_if_the_evaluation_fails() -> None:
    cond = eq(floordiv(sym(M), sym(N)), 2)
    assert selected(cond, (4, 2), (9, 3)) == [False, True]
    assert selected(cond, (4, 2), (9, 0)) == [True, True]
