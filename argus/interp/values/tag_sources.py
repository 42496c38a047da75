"""The inverse of tagging: the input element that each tag record was assigned to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from argus.core.ir import Buffer
from argus.interp.memory.cells import BoolArray, Cells, IntArray


@frozen(eq=False)
class TagSources:
    """For each record, the index in `tensors` of the input it was assigned to (-1 for none), and the cell there."""

    tensors: tuple[Buffer, ...]
    owner: IntArray
    cell: IntArray

    @classmethod
    def of(cls, tensors: Mapping[Buffer, Cells], size: int) -> TagSources:
        """The sources in these tensors, all of which have marks. size: the number of records."""
        owner, cell = np.full(size, -1, np.int64), np.zeros(size, np.int64)
        for position, cells in enumerate(tensors.values()):
            assert cells.marks is not None
            tagged = np.flatnonzero(cells.marks > 0)
            owner[cells.marks[tagged]], cell[cells.marks[tagged]] = position, tagged
        return cls(tuple(tensors), owner, cell)

    def known(self, marks: IntArray) -> BoolArray:
        """Which marks are no values, or have a record that was assigned to an input."""
        last = self.owner.size - 1
        return (marks < 0) | ((marks <= last) & (self.owner[np.clip(marks, 0, last)] >= 0))
