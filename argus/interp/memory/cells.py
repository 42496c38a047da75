"""Memory cells, each with a value and a mark: a state (uninitialised, padding, ...) or the number of a tag record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define

from argus.core.dtype import DType
from argus.interp.memory.columns import distinct_columns
from argus.interp.values.sets import MISSING, BoolArray, How, IntArray, Sets, is_single

AnyArray = npt.NDArray[Any]

BOTTOM, TOP, OPAQUE = -1, -2, -3
"""States without a record: uninitialised; garbage; and a value that is not tracked and therefore not checked.

A mark >= 0 is the number of a record.
"""
ZERO, ONE, LOW, HIGH, NAN, ABOVE, NUMBER = -4, -5, -6, -7, -8, -9, -10
"""Numbers that were not computed from data with tags, or do not depend on it: 0, 1, -inf, +inf, NaN, any other above 0,
and any other."""
_OUTSIDE = 7
PLAIN = 0
"""The mark of a value with an empty record."""

_STATES = {
    BOTTOM: "uninitialised",
    TOP: "garbage",
    OPAQUE: "not tracked",
    ZERO: "zero",
    ONE: "one",
    LOW: "-inf",
    HIGH: "inf",
    NAN: "NaN",
    ABOVE: "a number above 0",
    NUMBER: "a number",
}
LOWEST = NUMBER - _OUTSIDE
"""The least mark."""


def number_of(value: float) -> int:
    """The state of a number."""
    other = ABOVE if value > 0 else NUMBER
    return NAN if np.isnan(value) else {0.0: ZERO, 1.0: ONE, -np.inf: LOW, np.inf: HIGH}.get(value, other)


def padding_of(edge: float) -> int:
    """The mark of elements outside a tensor that are filled with `edge`."""
    return number_of(edge) - _OUTSIDE


def is_padding(marks: IntArray) -> BoolArray:
    """Which marks are padding."""
    return marks < NUMBER


def without_padding(state: int) -> int:
    """The state of a number, for padding that of the number that it is filled with."""
    return state + _OUTSIDE if state < NUMBER else state


class Records:
    """The tag records: a table with one row per record and one column per tag name.

    A component (entry) is an integer or a set of integers. sets: the sets. set_names: names with a component that is no
    integer. The last rows, one per state, stay empty, so that a column can be indexed by any mark, negative ones
    included.
    """

    def __init__(self) -> None:
        self._columns: dict[str, IntArray] = {}
        self._rows = 1
        self._capacity = 1 << 12
        self._summed = np.zeros(self._capacity, np.bool_)
        self.sets = Sets()
        self.set_names: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """All tag names."""
        return tuple(self._columns)

    @property
    def size(self) -> int:
        """The number of records; all marks are smaller."""
        return self._rows

    def add(self, count: int, columns: Mapping[str, IntArray], summed: bool | BoolArray = False) -> int:
        """Append `count` records and return the number of the first; a column has one entry per record.

        summed: whether the value is a sum that a reduction or a matrix instruction made.
        """
        first = self._rows
        self._rows += count
        if self._rows - LOWEST > self._capacity:
            self._grow()
        self._summed[first : self._rows] = summed
        for name, column in columns.items():
            self._column(name)[first : self._rows] = column
            if name not in self.set_names and not is_single(column[column != MISSING]).all():
                self.set_names.add(name)
        return first

    def get(self, name: str, marks: IntArray) -> IntArray:
        """The component `name` of each mark's record; MISSING where there is none."""
        return self._column(name)[marks]

    def plain(self, name: str, marks: IntArray) -> IntArray:
        """As `get`, without flags that say how a set was made; a set of one element is that element."""
        column = self.get(name, marks)
        return self._mapped(column, self.sets.plain) if name in self.set_names else column

    def summed(self, marks: IntArray) -> BoolArray:
        """Whether the values of these marks are sums that a reduction or a matrix instruction made."""
        return self._summed[marks]

    def first_of_equal(self, keys: tuple[IntArray, ...], marks: IntArray) -> BoolArray:
        """A mask without the elements whose keys and record equal those of an earlier element."""
        _, first, back = distinct_columns(np.stack(keys))
        other = marks[first[back]]
        equal = (marks == other) | (marks > 0) & (other > 0)
        equal &= np.all([self.get(name, marks) == self.get(name, other) for name in self.names] or [equal], axis=0)
        return ~equal | (first[back] == np.arange(marks.size))

    def of(self, mark: int) -> dict[str, int]:
        """The components of one record."""
        return {name: int(column[mark]) for name, column in self._columns.items() if column[mark] != MISSING}

    def text(self, mark: int) -> str:
        """A mark as text: `m=0, k=3`, or the name of its state."""
        if mark < 0:
            return _STATES[mark] if mark >= NUMBER else f"padding of {_STATES[mark + _OUTSIDE]}"
        return ", ".join(f"{name}={self.sets.text(value)}" for name, value in self.of(mark).items()) or "no tags"

    def component_text(self, component: int) -> str:
        """A component as text."""
        return "nothing" if component == MISSING else self.sets.text(component)

    def combined(self, how: How, left: IntArray, right: IntArray) -> IntArray:
        """The records of values combined element by element; all marks are values."""
        ours, theirs = left.ravel(), right.ravel()
        columns: dict[str, IntArray] = {}
        gains, differs = np.zeros(ours.shape, np.bool_), np.zeros(ours.shape, np.bool_)
        for name in self.names:
            one, other = self.get(name, ours), self.get(name, theirs)
            columns[name] = found = self.combined_components(how, one, other)
            gains |= found != one
            differs |= found != other
        summed = self._summed[ours] | self._summed[theirs]
        gains |= summed != self._summed[ours]
        differs |= summed != self._summed[theirs]
        result = np.where(gains, theirs, ours)
        new = gains & differs
        count = int(new.sum())
        if count:
            first = self.add(count, {name: column[new] for name, column in columns.items()}, summed[new])
            result[new] = np.arange(first, first + count, dtype=np.int64)
        return result.reshape(left.shape)

    def combined_components(self, how: How, one: IntArray, other: IntArray) -> IntArray:
        """The components of a name in values combined element by element."""
        found = np.where(one == MISSING, other, one)
        both = (one != MISSING) & (other != MISSING)
        several = both & (one != other) | (found != MISSING) & ~is_single(found)
        if several.any():
            pairs, _, back = distinct_columns(np.stack([one[several], other[several]]))
            made = [self.sets.combined(how, mine, theirs) for mine, theirs in pairs.T.tolist()]
            found[several] = np.array(made, np.int64)[back]
        return found

    def weighted(self, marks: IntArray) -> IntArray:
        """The records of values that are multiplied by a number."""
        return self._changed(marks, self.sets.weighted)

    def completed(self, marks: IntArray) -> IntArray:
        """The records of functions of values: sums by reductions and matrix instructions are complete."""
        sets = self.sets
        return self._changed(marks, lambda each: sets.weighted(each) if sets.is_own(each) else MISSING)

    def _changed(self, marks: IntArray, change: Callable[[int], int]) -> IntArray:
        """The records with each component that is no integer replaced."""
        if not self.set_names:
            return marks
        old, back = np.unique(marks, return_inverse=True)
        columns = {name: self.get(name, old) for name in self.names}
        made = {name: self._mapped(column, change) for name, column in columns.items() if name in self.set_names}
        new = (old > 0) & np.any([column != columns[name] for name, column in made.items()], axis=0)
        if not new.any():
            return marks
        columns |= made
        first = self.add(
            int(new.sum()), {name: column[new] for name, column in columns.items()}, self._summed[old[new]]
        )
        old[new] = np.arange(first, first + int(new.sum()), dtype=np.int64)
        return old[back.reshape(-1)].reshape(marks.shape)

    def _mapped(self, column: IntArray, change: Callable[[int], int]) -> IntArray:
        """The components, with those that are no integers replaced."""
        several = (column != MISSING) & ~is_single(column)
        if not several.any():
            return column
        found = column.copy()
        for component in np.unique(column[several]).tolist():
            found[column == component] = change(component)
        return found

    def _column(self, name: str) -> IntArray:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = np.full(self._capacity, MISSING, np.int64)
        return column

    def _grow(self) -> None:
        while self._rows - LOWEST > self._capacity:
            self._capacity *= 2
        more = self._capacity - self._summed.size
        self._summed = np.concatenate([self._summed, np.zeros(more, np.bool_)])
        for name, column in self._columns.items():
            wider = np.full(self._capacity, MISSING, np.int64)
            wider[: column.size] = column
            self._columns[name] = wider


@define(eq=False)
class Cells:
    """Flat storage of one buffer: values and marks, either of which may be absent."""

    values: AnyArray | None
    marks: IntArray | None


def poison(dtype: DType) -> object:
    """The value of uninitialised cells: NaN, or the least integer."""
    return np.nan if dtype.family == "float" else dtype.integers.start


def storage(dtype: DType, *, exact: bool) -> np.dtype[Any]:
    """The NumPy type of the values of a type. exact: floats are not rounded to it, only to float64."""
    return np.dtype(np.float64) if exact and dtype.family == "float" else dtype.numpy


def blank(count: int, dtype: DType, *, values: bool, tags: bool, exact: bool = False) -> Cells:
    """Uninitialised cells."""
    return Cells(
        np.full(count, poison(dtype), storage(dtype, exact=exact)) if values else None,
        np.full(count, BOTTOM, np.int64) if tags else None,
    )


@define(eq=False)
class Written:
    """The first and the second write of each cell of a tensor, as numbers into `Launch.writes`; -1 for none."""

    first: IntArray
    second: IntArray
    first_lane: IntArray
    second_lane: IntArray

    @classmethod
    def of(cls, cells: int) -> Written:
        """For a number of cells that were not written yet."""
        return cls(*(np.full(cells, -1, np.int64) for _ in range(4)))

    def note(self, number: int, cells: IntArray, lanes: IntArray) -> None:
        """Record that write `number` stores these cells, from these lanes (thread times registers plus register)."""
        fresh = self.first[cells] < 0
        self.first[cells[fresh]] = number
        self.first_lane[cells[fresh][::-1]] = lanes[fresh][::-1]
        again = ~fresh | (self.first_lane[cells] != lanes)
        late = cells[again]
        self.second_lane[late] = np.where(self.second[late] < 0, lanes[again], self.second_lane[late])
        self.second[late] = np.where(self.second[late] < 0, number, self.second[late])


def unravel(number: int, extents: Sequence[int]) -> tuple[int, ...]:
    """The coordinates of an element number, first axis fastest."""
    axes: list[int] = []
    for extent in extents:
        axes.append(number % extent)
        number //= extent
    return tuple(axes)
