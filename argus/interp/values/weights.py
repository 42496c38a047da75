"""Tracks whether the scales of statistics are reliable.

A statistic records the number that it was multiplied by as its scale. Scaling anything else, such as single elements,
makes all scales of the run unreliable (`doubtful`), and they are then not checked.
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
"""Stands for an unknown number."""


def tracks_weights(kernel: Kernel) -> bool:
    """Whether scales of statistics can be tracked: all elements have tags, so that values without tags are numbers."""
    every = list(walk(kernel.body))
    copies = [stmt for stmt in every if isinstance(stmt, Copy)]
    if any(isinstance(stmt, Mma) for stmt in every) or any(copy.combine is not None for copy in copies):
        return False
    tagged = {stmt.view.buffer for stmt in every if isinstance(stmt, Tag)}
    read = {copy.source.buffer for copy in copies if copy.source.buffer.space == "global"}
    folds = any(isinstance(stmt, Fold) and stmt.op == "add" for stmt in every)
    return folds and read <= tagged


def holds_sets(records: Records, marks: IntArray) -> BoolArray:
    """Which of these values are sums over sets."""
    found = np.zeros(marks.shape, np.bool_)
    for name in records.set_names:
        found |= is_set(records.get(name, np.maximum(marks, 0)))
    return found


def note_scaling(records: Records, marks: IntArray) -> None:
    """Note that these values are multiplied by a literal of the kernel, which scales don't track."""
    records.kinds.scaled |= bool(holds_sets(records, marks).any())
    records.kinds.doubtful |= bool((marks > 0).any())


def note_operation(records: Records, name: str, left: IntArray, right: IntArray) -> None:
    """Note a binary operation that makes scales unreliable: scaled elements, a sum added to itself or subtracted."""
    kinds = records.kinds
    both, data = (left > 0) & (right > 0), (left > 0) | (right > 0)
    if name in ("mul", "div"):
        sets = (holds_sets(records, left) | holds_sets(records, right)) & data
        kinds.scaled |= bool(sets.any())
        plain = _plain(records, left, right)
        kinds.doubtful |= bool((plain & (both & sets | data & ~both & ~sets)).any())
    elif name in ("add", "sub"):
        again = (left == right) | _plain(records, left, right) if name == "sub" else left == right
        kinds.doubtful |= bool((both & again).any())


def _plain(records: Records, left: IntArray, right: IntArray) -> BoolArray:
    return ~(_statistic(records, left) | _statistic(records, right))


def _statistic(records: Records, marks: IntArray) -> BoolArray:
    known = records.kind(marks)
    return records.kinds.without_statistics(known) != known


def note_selection(records: Records, marks: IntArray) -> None:
    """Note a selection between two values, which scales don't track."""
    records.kinds.doubtful |= bool(_statistic(records, marks).any() or holds_sets(records, marks).any())
