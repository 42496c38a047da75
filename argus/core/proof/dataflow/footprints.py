"""Compares the cells of two accesses as tables of numbers: writers, common cells, threads and waves."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core.walk import IntArray

AxisRange = tuple[int, int, int]
"""(axis, least coordinate, number of coordinates) of a buffer axis on which cells are numbered."""
AxisRanges = tuple[AxisRange, ...]
BoolArray = npt.NDArray[np.bool_]


@frozen(eq=False)
class Writers:
    """For each element of a read, whether a write covers it, and the (thread, value) that wrote it, else 0.

    same: the same (thread, value) wrote each element.
    """

    covered: BoolArray
    writer: tuple[IntArray, IntArray]
    same: bool


@frozen(eq=False)
class CellTables:
    """Cell numbers of two accesses of one buffer, each of shape (threads, values); results are cached.

    An element that is not accessed has a cell number that occurs nowhere else. spans: axes of the first access.
    """

    spans: AxisRanges
    first: IntArray
    second: IntArray
    _wave_masks: dict[int, tuple[IntArray, IntArray]] = field(
        factory=dict[int, "tuple[IntArray, IntArray]"], init=False, repr=False
    )

    @cached_property
    def count(self) -> int:
        """One more than the greatest cell number."""
        return int(max(self.first.max(), self.second.max())) + 1

    @cached_property
    def writers(self) -> Writers:
        """The writer of each element of the first access; the second must be a write that writes no cell twice."""
        wrote = np.full(self.count, -1, np.int64)
        flat = self.second.ravel()
        wrote[flat] = np.arange(flat.size)
        writers = wrote[self.first]
        covered = writers >= 0
        values = self.second.shape[1]
        own = np.arange(writers.size).reshape(writers.shape)
        same = self.first.shape == self.second.shape and bool((writers == own).all())
        writers = np.where(covered, writers, 0)
        return Writers(covered, (writers // values, writers % values), same)

    @cached_property
    def shared(self) -> bool:
        """Whether the accesses have a common cell."""
        touched = np.zeros(self.count, np.bool_)
        touched[self.first.ravel()] = True
        return bool(touched[self.second.ravel()].any())

    @cached_property
    def of_two_threads(self) -> bool:
        """Whether some cell is accessed by one thread in the first and by a different thread in the second."""
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
        """Per cell, bit masks of the waves (of `unit` threads) that access it in the first and in the second access."""
        if unit not in self._wave_masks:
            self._wave_masks[unit] = (
                _wave_masks(self.first, unit, self.count),
                _wave_masks(self.second, unit, self.count),
            )
        return self._wave_masks[unit]


def _wave_masks(cells: IntArray, unit: int, count: int) -> IntArray:
    bits = np.zeros(count, np.int64)
    for wave, first in enumerate(range(0, cells.shape[0], unit)):
        bits[cells[first : first + unit]] |= 1 << wave
    return bits
