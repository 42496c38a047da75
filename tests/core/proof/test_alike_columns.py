"""Columns of a table of integers by their kind, whatever the size of the numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from argus.core.proof.values.held.tables import alike_columns

NUMBERS = st.sampled_from([0, 1, 2, -3, 1 << 40, -(1 << 60), 1 << 61])
COLUMNS = st.integers(1, 4).flatmap(
    lambda height: st.lists(st.lists(NUMBERS, min_size=height, max_size=height), min_size=1, max_size=12)
)


@given(COLUMNS)
def test_columns_are_of_one_kind_if_they_are_equal(columns: list[list[int]]) -> None:
    rows = np.array(columns, np.int64).T
    first, kinds = alike_columns(rows)
    wanted, place, inverse = np.unique(rows, axis=1, return_index=True, return_inverse=True)
    assert rows[:, first].tolist() == wanted.tolist()
    assert first.tolist() == place.tolist()
    assert kinds.tolist() == inverse.reshape(-1).tolist()
