"""Distinct columns of a few rows of integers."""

from __future__ import annotations

import numpy as np

from argus.interp.values.sets import IntArray

LARGEST = 1 << 62
"""The number of combinations of the rows' integers up to which each column has a key of its own in 64 bits."""


def distinct_columns(rows: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The distinct columns in lexicographic order, the first place of each, and the number of each place's column.

    As `np.unique(rows, axis=1, return_index=True, return_inverse=True)`, of arrays in which equal columns mostly stand
    side by side: the first of each run alone is sorted, by integers, where numpy compares columns byte by byte.
    """
    starts = np.ones(rows.shape[1], np.bool_)
    starts[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    heads = np.flatnonzero(starts)
    if heads.size == 1:
        return rows[:, :1], heads, np.zeros(starts.shape, np.int64)
    keys, count = np.zeros(heads.size, np.int64), 1
    for row in rows[:, heads]:
        kinds, ranks = np.unique(row, return_inverse=True)
        count *= kinds.size
        if count > LARGEST:
            keys, count = np.unique(keys, return_inverse=True)[1], heads.size * kinds.size
        keys = keys * kinds.size + ranks
    _, first, back = np.unique(keys, return_index=True, return_inverse=True)
    return rows[:, heads[first]], heads[first], back[np.cumsum(starts) - 1]
