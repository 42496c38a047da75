"""The cells of a buffer that two accesses touch, as tables of numbers, and what these say of threads."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core.walk import IntArray

AxisRange = tuple[int, int, int]
"""An axis of a buffer on which cells are numbered, the least coordinate there, and how many there are."""
AxisRanges = tuple[AxisRange, ...]
BoolArray = npt.NDArray[np.bool_]


@frozen(eq=False)
class Writers:
    """Of each element of a read whether a write covers it, and the (thread, value) that wrote it, else 0.

    same: each element is what the same thread wrote as the same value.
    """

    covered: BoolArray
    place: tuple[IntArray, IntArray]
    same: bool


@frozen(eq=False)
class CellTables:
    """Cell numbers of two accesses, comparable, each (thread, value); what is asked of them is worked out once.

    Elements of threads that do not take part have a cell each that nothing else touches. spans: the first's axes.
    """

    spans: AxisRanges
    first: IntArray
    second: IntArray
    _waves: dict[int, tuple[IntArray, IntArray]] = field(
        factory=dict[int, "tuple[IntArray, IntArray]"], init=False, repr=False
    )

    @cached_property
    def count(self) -> int:
        """Above all of the numbers."""
        return int(max(self.first.max(), self.second.max())) + 1

    @cached_property
    def taken(self) -> Writers:
        """Who wrote each element of the first access, if the second is a write that touches no cell twice."""
        wrote = np.full(self.count, -1, np.int64)
        flat = self.second.ravel()
        wrote[flat] = np.arange(flat.size)
        taken = wrote[self.first]
        covered = taken >= 0
        values = self.second.shape[1]
        own = np.arange(taken.size).reshape(taken.shape)
        same = self.first.shape == self.second.shape and bool((taken == own).all())
        taken = np.where(covered, taken, 0)
        return Writers(covered, (taken // values, taken % values), same)

    @cached_property
    def shared(self) -> bool:
        """Whether the two have a cell in common."""
        touched = np.zeros(self.count, np.bool_)
        touched[self.first.ravel()] = True
        return bool(touched[self.second.ravel()].any())

    @cached_property
    def of_two_threads(self) -> bool:
        """Whether some cell is touched by one thread in the first and by another in the second."""
        first, second = self.first, self.second
        if first.shape[0] == second.shape[0] == 1:
            return False
        least, most = np.full(self.count, first.shape[0], np.int64), np.full(self.count, -1, np.int64)
        mine = np.broadcast_to(np.arange(first.shape[0], dtype=np.int64)[:, None], first.shape)
        np.minimum.at(least, first.ravel(), mine.ravel())
        np.maximum.at(most, first.ravel(), mine.ravel())
        theirs = np.arange(second.shape[0], dtype=np.int64)[:, None]
        touched = most[second] >= 0
        return bool((touched & ((least[second] != theirs) | (most[second] != theirs))).any())

    def waves(self, unit: int) -> tuple[IntArray, IntArray]:
        """Per cell, the sets of waves of `unit` threads that touch it in the first and in the second, as bits."""
        if unit not in self._waves:
            self._waves[unit] = _waves(self.first, unit, self.count), _waves(self.second, unit, self.count)
        return self._waves[unit]


def _waves(cells: IntArray, unit: int, count: int) -> IntArray:
    bits = np.zeros(count, np.int64)
    for wave, first in enumerate(range(0, cells.shape[0], unit)):
        bits[cells[first : first + unit]] |= 1 << wave
    return bits
