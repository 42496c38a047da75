"""Distinct columns are those of numpy, in its order, also where 64 bits hold no key of all rows."""

from __future__ import annotations

import numpy as np
import pytest

from argus.interp.memory import columns
from argus.interp.memory.columns import distinct_columns
from argus.interp.values.sets import MISSING


@pytest.mark.parametrize("most", [columns.LARGEST, 7], ids=["keys", "keys numbered again"])
@pytest.mark.parametrize("rows", [1, 2, 3, 5])
@pytest.mark.parametrize("run", [1, 4], ids=["apart", "runs"])
def test_as_numpy(most: int, rows: int, run: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "LARGEST", most)
    random = np.random.default_rng(0)
    for count in (1, 5, 300):
        given = random.integers(-2, 3, (rows, count))
        given[0, ::7] = MISSING
        given = np.repeat(given, run, axis=1)
        wanted = np.unique(given, axis=1, return_index=True, return_inverse=True)
        for one, other in zip(distinct_columns(given), wanted, strict=True):
            assert one.tolist() == other.reshape(one.shape).tolist()


def test_no_columns() -> None:
    kinds, first, back = distinct_columns(np.empty((2, 0), np.int64))
    assert (kinds.shape, first.size, back.size) == ((2, 0), 0, 0)


def test_equal_columns() -> None:
    kinds, first, back = distinct_columns(np.full((2, 3), 4))
    assert (kinds.tolist(), first.tolist(), back.tolist()) == ([[4], [4]], [0], [0, 0, 0])
