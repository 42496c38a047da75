"""Memory cells, each with a value and a mark: a state (uninitialised, padding, ...) or the number of a tag record."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define

from argus.core.dtype import DType
from argus.interp.values.sets import MISSING, UNTRACKED, BoolArray, IntArray, Sets, is_set, is_single
from argus.interp.values.softmax_shadow import ValueKinds

AnyArray = npt.NDArray[Any]

BOTTOM, OUTSIDE, TOP, ZERO, OPAQUE = -1, -2, -3, -4, -5
"""States without a record: uninitialised; padding of 0; garbage; a zero, which is compatible with every record; and a
value whose record is not tracked and therefore not checked. A mark >= 0 is the number of a record."""
LOW, FILLED, NUMBER = -6, -7, -8
"""Further states: padding of -inf, padding with another number, and a number that was not computed from data."""
PLAIN = 0
"""The mark of a value with an empty record."""
PADDING = (OUTSIDE, LOW, FILLED)

_STATES = {
    BOTTOM: "uninitialised",
    OUTSIDE: "padding",
    TOP: "garbage",
    ZERO: "zero",
    OPAQUE: "not tracked",
    LOW: "padding of -inf",
    FILLED: "padding",
    NUMBER: "a number",
}


def padding_of(edge: float) -> int:
    """The mark of elements outside a tensor that are filled with `edge`."""
    return OUTSIDE if edge == 0 else LOW if edge == -np.inf else FILLED


class Records:
    """The tag records: a table with one row per record and one column per tag name.

    A component (entry) is an integer or a set of integers. sets: the sets. untracked: names with an untracked
    component. set_names: names with a component that is a set. The last rows, one per state, stay empty, so that a
    column can be indexed by any mark, negative ones included.
    """

    def __init__(self) -> None:
        self._columns: dict[str, IntArray] = {}
        self._rows = 1
        self._capacity = 1 << 12
        self._summed = np.zeros(self._capacity, np.bool_)
        self._kind = np.zeros(self._capacity, np.int64)
        self._with_kind: dict[tuple[int, int], int] = {}
        self.sets = Sets()
        self.kinds = ValueKinds()
        self.untracked: set[str] = set()
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

        summed: whether the value is a sum of products of a matrix instruction.
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
        """The component `name` of each mark's record; MISSING where there is none."""
        return self._column(name)[marks]

    def unwrapped(self, name: str, marks: IntArray) -> IntArray:
        """As `get`, with a set of one element replaced by that element."""
        column = self.get(name, marks)
        if name not in self.set_names:
            return column
        column = column.copy()
        sets = is_set(column)
        for component in np.unique(column[sets]):
            members = self.sets.members(int(component))
            if len(members) == 1:
                column[column == component] = members[0]
        return column

    def summed(self, marks: IntArray) -> BoolArray:
        """Whether the values of these marks are sums of products of matrix instructions."""
        return self._summed[marks]

    def kind(self, marks: IntArray) -> IntArray:
        """The value kinds of these marks' records, by number (see `ValueKinds`); 0 for marks without a record."""
        return self._kind[np.maximum(marks, 0)]

    def with_kind(self, marks: IntArray, kind: IntArray) -> IntArray:
        """The records with these value kinds; marks without a record are unchanged."""
        differs = (marks > 0) & (self.kind(marks) != kind)
        if not differs.any():
            return marks
        result = marks.copy()
        pairs, back = np.unique(np.stack([marks[differs], kind[differs]]), axis=1, return_inverse=True)
        wanted = [(mark, number) for mark, number in pairs.T.tolist()]
        fresh = [pair for pair in wanted if pair not in self._with_kind]
        if fresh:
            old = np.array([mark for mark, _ in fresh], np.int64)
            columns = {name: self.get(name, old) for name in self.names}
            for at, (_, number) in enumerate(fresh):
                for name, component in self.kinds.components(self.sets, number).items():
                    columns[name][at] = component
                    self.note(name, columns[name])
            first = self.add(old.size, columns, self._summed[old])
            self._kind[first : first + old.size] = [number for _, number in fresh]
            self._with_kind.update({pair: first + at for at, pair in enumerate(fresh)})
        made = [self._with_kind[pair] for pair in wanted]
        result[differs] = np.array(made, np.int64)[back.reshape(-1)]
        return result

    def first_of_equal(self, keys: tuple[IntArray, ...], marks: IntArray) -> BoolArray:
        """A mask without the elements whose keys and record equal those of an earlier element."""
        _, first, back = np.unique(np.stack(keys), axis=1, return_index=True, return_inverse=True)
        other = marks[first[back.reshape(-1)]]
        equal = (marks == other) | (marks > 0) & (other > 0)
        equal &= (self.kind(marks) == self.kind(other)) & np.all(
            [self.get(name, marks) == self.get(name, other) for name in self.names] or [equal], axis=0
        )
        return ~equal | (first[back.reshape(-1)] == np.arange(marks.size))

    def of(self, mark: int) -> dict[str, int]:
        """The components of one record."""
        return {name: int(column[mark]) for name, column in self._columns.items() if column[mark] != MISSING}

    def text(self, mark: int) -> str:
        """A mark as text: `m=0, k=3`, or the name of its state."""
        if mark < 0:
            return _STATES[mark]
        return ", ".join(f"{name}={self.sets.text(value)}" for name, value in self.of(mark).items()) or "no tags"

    def component_text(self, component: int) -> str:
        """A component as text."""
        return "nothing" if component == MISSING else self.sets.text(component)

    def note(self, name: str, components: IntArray) -> None:
        """Update `set_names` and `untracked` for new components of a name."""
        if name not in self.set_names and is_set(components).any():
            self.set_names.add(name)
        if name not in self.untracked and (components == UNTRACKED).any():
            self.untracked.add(name)

    def union(self, left: IntArray, right: IntArray, *, summing: bool = False, over: Collection[str] = ()) -> IntArray:
        """Records with the components of both sides, the left side's where both have one; all marks are values.

        summing: sets are united; otherwise two different sets become untracked. over: names whose different integers
        are united to a set.
        """
        ours, theirs = left.ravel(), right.ravel()
        columns: dict[str, IntArray] = {}
        gains, differs = np.zeros(ours.shape, np.bool_), np.zeros(ours.shape, np.bool_)
        for name in self.names:
            one, other = self.get(name, ours), self.get(name, theirs)
            found = np.where(one == MISSING, other, one)
            if name in self.set_names or name in self.untracked or name in over:
                found = self._unite(name, one, other, found, summing=summing, over=name in over)
            columns[name] = found
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

    def _unite(
        self, name: str, one: IntArray, other: IntArray, found: IntArray, *, summing: bool, over: bool
    ) -> IntArray:
        """The united components of a name, some of which are sets; an integer takes precedence over a set."""
        unlike = (one != other) & (one != MISSING) & (other != MISSING)
        again = is_set(one) & (one == other) if summing else np.zeros(one.shape, np.bool_)
        if not (unlike | again).any():
            return found
        found = np.where(unlike & is_single(other) & ~is_single(one), other, found)
        sets = again | unlike & ~is_single(one) & ~is_single(other)
        if over:
            sets |= unlike
        for at in np.flatnonzero(sets):
            pair = (int(one[at]), int(other[at]))
            found[at] = self.sets.union(pair) if summing else UNTRACKED
        found[unlike & ((one == UNTRACKED) | (other == UNTRACKED))] = UNTRACKED
        self.note(name, found)
        return found

    def without_sets(self, marks: IntArray) -> IntArray:
        """The records without their set components, for a sum that is complete."""
        result = marks
        for name in self.set_names:
            column = self.get(name, result)
            sets = is_set(column) & (result > 0)
            if sets.any():
                result = self._without(name, result, sets)
        return result

    def without_tracked_sets(self, marks: IntArray, where: BoolArray) -> IntArray:
        """The records with their set components made untracked where `where` holds."""
        where = where & (marks > 0)
        if not where.any():
            return marks
        old, back = np.unique(marks[where], return_inverse=True)
        columns = {name: self.get(name, old) for name in self.names}
        columns = {name: np.where(is_set(column), UNTRACKED, column) for name, column in columns.items()}
        for name, column in columns.items():
            self.note(name, column)
        first = self.add(old.size, columns, self._summed[old])
        result = marks.copy()
        result[where] = first + back.reshape(-1)
        return result

    def _without(self, name: str, marks: IntArray, where: BoolArray) -> IntArray:
        old, back = np.unique(marks[where], return_inverse=True)
        columns = {each: self.get(each, old) for each in self.names if each != name}
        first = self.add(old.size, columns, self._summed[old])
        self._kind[first : first + old.size] = self._kind[old]
        result = marks.copy()
        result[where] = first + back.reshape(-1)
        return result

    def _column(self, name: str) -> IntArray:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = np.full(self._capacity, MISSING, np.int64)
        return column

    def _grow(self) -> None:
        while self._rows + len(_STATES) > self._capacity:
            self._capacity *= 2
        more = self._capacity - self._summed.size
        self._summed = np.concatenate([self._summed, np.zeros(more, np.bool_)])
        self._kind = np.concatenate([self._kind, np.zeros(more, np.int64)])
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
    """The value of uninitialised cells: NaN, or the smallest 32-bit integer."""
    return np.nan if dtype.family == "float" else np.iinfo(np.int32).min


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
