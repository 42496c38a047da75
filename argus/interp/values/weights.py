"""By which numbers elements are weighed, as far as runs follow it.

A statistic has the number that it has been multiplied by as its scale. What is weighed in another way, such as single
elements, makes all scales of the run doubtful: nothing is judged by them then.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from argus.core.ir import Copy, Fold, Kernel, Mma, Tag, walk
from argus.interp.memory.cells import Records
from argus.interp.values.sets import is_set

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
UNKNOWN = np.inf
"""Stands for a number that is not known."""


def weighs(kernel: Kernel) -> bool:
    """Whether scales of statistics can be followed: all elements have tags, and what has none is a number."""
    every = list(walk(kernel.body))
    copies = [stmt for stmt in every if isinstance(stmt, Copy)]
    if any(isinstance(stmt, Mma) for stmt in every) or any(copy.combine is not None for copy in copies):
        return False
    tagged = {stmt.view.buffer for stmt in every if isinstance(stmt, Tag)}
    read = {copy.source.buffer for copy in copies if copy.source.buffer.space == "global"}
    folds = any(isinstance(stmt, Fold) and stmt.op == "add" for stmt in every)
    return folds and read <= tagged


def holds_sets(records: Records, marks: IntArray) -> BoolArray:
    """Which of these are sums over sets."""
    found = np.zeros(marks.shape, np.bool_)
    for name in records.folded:
        found |= is_set(records.get(name, np.maximum(marks, 0)))
    return found


def scaled(records: Records, marks: IntArray) -> None:
    """These are multiplied by a number that is written in the kernel, which scales do not follow."""
    records.standings.scaled |= bool(holds_sets(records, marks).any())
    records.standings.doubtful |= bool((marks > 0).any())


def note(records: Records, name: str, left: IntArray, right: IntArray) -> None:
    """Say what an operation of two makes doubtful: single elements weighed, a sum added to itself or taken away."""
    standings = records.standings
    both, data = (left > 0) & (right > 0), (left > 0) | (right > 0)
    if name in ("mul", "div"):
        sets = (holds_sets(records, left) | holds_sets(records, right)) & data
        standings.scaled |= bool(sets.any())
        plain = _plain(records, left, right)
        standings.doubtful |= bool((plain & (both & sets | data & ~both & ~sets)).any())
    elif name in ("add", "sub"):
        again = (left == right) | _plain(records, left, right) if name == "sub" else left == right
        standings.doubtful |= bool((both & again).any())


def _plain(records: Records, left: IntArray, right: IntArray) -> BoolArray:
    return ~(_statistic(records, left) | _statistic(records, right))


def _statistic(records: Records, marks: IntArray) -> BoolArray:
    known = records.standing(marks)
    return records.standings.but_statistics(known) != known


def chosen(records: Records, marks: IntArray) -> None:
    """A choice between two data, which scales do not follow."""
    records.standings.doubtful |= bool(_statistic(records, marks).any() or holds_sets(records, marks).any())
