"""Cells: a value and a mark each. A mark is a state or the number of a record of tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define

from argus.core.dtype import DType

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]

BOTTOM, OUTSIDE, TOP, ZERO, OPAQUE = -1, -2, -3, -4, -5
"""States without a record: uninitialised, padding filled by an edge, garbage; a zero, which every record fits; and
a value whose record is not tracked, so that nothing is judged of it. A mark >= 0 is a record's number."""
PLAIN = 0
"""The mark of a value whose record is empty."""
MISSING = np.iinfo(np.int64).min
"""What a column holds for a record without that name."""

_STATES = {BOTTOM: "uninitialised", OUTSIDE: "padding", TOP: "garbage", ZERO: "zero", OPAQUE: "not tracked"}


def shown(component: int) -> str:
    """A component as a person reads it."""
    return "nothing" if component == MISSING else str(component)


class Records:
    """The records of tags: one row a record, one column a name.

    The last rows, one a state, stay empty, so that a column indexed by any mark, negative ones included, is right.
    """

    def __init__(self) -> None:
        self._columns: dict[str, IntArray] = {}
        self._rows = 1
        self._capacity = 1 << 12
        self._summed = np.zeros(self._capacity, np.bool_)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._columns)

    def add(self, count: int, columns: Mapping[str, IntArray], summed: bool | BoolArray = False) -> int:
        """The number of the first of `count` new records; a column has one entry a record.

        summed: whether products of a matrix instruction went into the value.
        """
        first = self._rows
        self._rows += count
        if self._rows + len(_STATES) > self._capacity:
            self._grow()
        self._summed[first : self._rows] = summed
        for name, column in columns.items():
            self._column(name)[first : self._rows] = column
        return first

    def get(self, name: str, marks: IntArray) -> IntArray:
        """The component of each mark's record; MISSING where there is none."""
        return self._column(name)[marks]

    def summed(self, marks: IntArray) -> BoolArray:
        """Whether products of matrix instructions went into the values of these marks."""
        return self._summed[marks]

    def of(self, mark: int) -> dict[str, int]:
        """One record."""
        return {name: int(column[mark]) for name, column in self._columns.items() if column[mark] != MISSING}

    def text(self, mark: int) -> str:
        """One mark as a person reads it: `m=0, k=3`."""
        if mark < 0:
            return _STATES[mark]
        return ", ".join(f"{name}={value}" for name, value in self.of(mark).items()) or "no tags"

    def union(self, left: IntArray, right: IntArray) -> IntArray:
        """New records with the components of both, the left's first; all marks are values."""
        flat_left, flat_right = left.ravel(), right.ravel()
        columns: dict[str, IntArray] = {}
        for name in self.names:
            ours = self.get(name, flat_left)
            columns[name] = np.where(ours == MISSING, self.get(name, flat_right), ours)
        first = self.add(flat_left.size, columns, self._summed[flat_left] | self._summed[flat_right])
        return np.arange(first, first + flat_left.size, dtype=np.int64).reshape(left.shape)

    def _column(self, name: str) -> IntArray:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = np.full(self._capacity, MISSING, np.int64)
        return column

    def _grow(self) -> None:
        while self._rows + len(_STATES) > self._capacity:
            self._capacity *= 2
        self._summed = np.concatenate([self._summed, np.zeros(self._capacity - self._summed.size, np.bool_)])
        for name, column in self._columns.items():
            wider = np.full(self._capacity, MISSING, np.int64)
            wider[: column.size] = column
            self._columns[name] = wider


@define(eq=False)
class Cells:
    """Flat storage of one buffer; either half may be switched off."""

    values: AnyArray | None
    marks: IntArray | None


def poison(dtype: DType) -> object:
    """A value that arithmetic shows: NaN, or the smallest integer."""
    return np.nan if dtype.family == "float" else np.iinfo(np.int32).min


def blank(count: int, dtype: DType, *, values: bool, tags: bool) -> Cells:
    """Uninitialised cells."""
    return Cells(
        np.full(count, poison(dtype), dtype.numpy) if values else None,
        np.full(count, BOTTOM, np.int64) if tags else None,
    )


@define(eq=False)
class Written:
    """Who stored each cell of a tensor: the first and the second write, as numbers into `log`; -1 is none."""

    first: IntArray
    second: IntArray
    first_lane: IntArray
    second_lane: IntArray

    @classmethod
    def of(cls, cells: int) -> Written:
        return cls(*(np.full(cells, -1, np.int64) for _ in range(4)))

    def note(self, number: int, cells: IntArray, lanes: IntArray) -> None:
        """Write `number` stores these cells, by these lanes (thread times registers plus register)."""
        fresh = self.first[cells] < 0
        self.first[cells[fresh]] = number
        self.first_lane[cells[fresh][::-1]] = lanes[fresh][::-1]
        again = ~fresh | (self.first_lane[cells] != lanes)
        late = cells[again]
        self.second_lane[late] = np.where(self.second[late] < 0, lanes[again], self.second_lane[late])
        self.second[late] = np.where(self.second[late] < 0, number, self.second[late])


def unravel(number: int, extents: Sequence[int]) -> tuple[int, ...]:
    """Coordinates of an element number that counts the first axis fastest."""
    axes: list[int] = []
    for extent in extents:
        axes.append(number % extent)
        number //= extent
    return tuple(axes)
