"""Cells: a value and a mark each. A mark is a state or the number of a record of tags."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define

from argus.core.dtype import DType
from argus.interp.values.sets import LOOSE, MISSING, BoolArray, IntArray, Sets, is_set, is_single
from argus.interp.values.softmax_shadow import Standings

AnyArray = npt.NDArray[Any]

BOTTOM, OUTSIDE, TOP, ZERO, OPAQUE = -1, -2, -3, -4, -5
"""States without a record: uninitialised, padding filled by an edge of 0, garbage; a zero, which every record fits;
and a value whose record is not tracked, so that nothing is judged of it. A mark >= 0 is a record's number."""
LOW, FILLED, NUMBER = -6, -7, -8
"""Further states: padding of -inf, padding that is another number, and a number that was computed of no data."""
PLAIN = 0
"""The mark of a value whose record is empty."""
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
    """The mark of elements that an edge fills."""
    return OUTSIDE if edge == 0 else LOW if edge == -np.inf else FILLED


class Records:
    """The records of tags: one row a record, one column a name.

    sets: what components stand for. loose: names of which some component is not tracked. folded: those of which some
    component is a set. The last rows, one a state, stay empty, so that a column indexed by any mark, negative ones
    included, is right.
    """

    def __init__(self) -> None:
        self._columns: dict[str, IntArray] = {}
        self._rows = 1
        self._capacity = 1 << 12
        self._summed = np.zeros(self._capacity, np.bool_)
        self._standing = np.zeros(self._capacity, np.int64)
        self._restood: dict[tuple[int, int], int] = {}
        self.sets = Sets()
        self.standings = Standings()
        self.loose: set[str] = set()
        self.folded: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._columns)

    @property
    def size(self) -> int:
        """How many there are; marks are below it."""
        return self._rows

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

    def plain(self, name: str, marks: IntArray) -> IntArray:
        """The component of each mark's record, a set of one as the integer in it."""
        column = self.get(name, marks)
        if name not in self.folded:
            return column
        column = column.copy()
        sets = is_set(column)
        for component in np.unique(column[sets]):
            members = self.sets.members(int(component))
            if len(members) == 1:
                column[column == component] = members[0]
        return column

    def summed(self, marks: IntArray) -> BoolArray:
        """Whether products of matrix instructions went into the values of these marks."""
        return self._summed[marks]

    def standing(self, marks: IntArray) -> IntArray:
        """What these marks' records stand as in a softmax; of marks that are none, nothing."""
        return self._standing[np.maximum(marks, 0)]

    def restood(self, marks: IntArray, standing: IntArray) -> IntArray:
        """The same records, standing as this; other marks stay."""
        differs = (marks > 0) & (self.standing(marks) != standing)
        if not differs.any():
            return marks
        result = marks.copy()
        pairs, back = np.unique(np.stack([marks[differs], standing[differs]]), axis=1, return_inverse=True)
        wanted = [(mark, stands) for mark, stands in pairs.T.tolist()]
        fresh = [pair for pair in wanted if pair not in self._restood]
        if fresh:
            old = np.array([mark for mark, _ in fresh], np.int64)
            columns = {name: self.get(name, old) for name in self.names}
            for at, (_, stands) in enumerate(fresh):
                for name, component in self.standings.components(self.sets, stands).items():
                    columns[name][at] = component
                    self.note(name, columns[name])
            first = self.add(old.size, columns, self._summed[old])
            self._standing[first : first + old.size] = [stands for _, stands in fresh]
            self._restood.update({pair: first + at for at, pair in enumerate(fresh)})
        made = [self._restood[pair] for pair in wanted]
        result[differs] = np.array(made, np.int64)[back.reshape(-1)]
        return result

    def once(self, keys: tuple[IntArray, ...], marks: IntArray) -> BoolArray:
        """The elements but for those that have the keys of an earlier one and the same value, as far as marks tell."""
        _, first, back = np.unique(np.stack(keys), axis=1, return_index=True, return_inverse=True)
        other = marks[first[back.reshape(-1)]]
        alike = (marks == other) | (marks > 0) & (other > 0)
        alike &= (self.standing(marks) == self.standing(other)) & np.all(
            [self.get(name, marks) == self.get(name, other) for name in self.names] or [alike], axis=0
        )
        return ~alike | (first[back.reshape(-1)] == np.arange(marks.size))

    def of(self, mark: int) -> dict[str, int]:
        """One record."""
        return {name: int(column[mark]) for name, column in self._columns.items() if column[mark] != MISSING}

    def text(self, mark: int) -> str:
        """One mark as a person reads it: `m=0, k=3`."""
        if mark < 0:
            return _STATES[mark]
        return ", ".join(f"{name}={self.sets.text(value)}" for name, value in self.of(mark).items()) or "no tags"

    def shown(self, component: int) -> str:
        """A component as a person reads it."""
        return "nothing" if component == MISSING else self.sets.text(component)

    def note(self, name: str, components: IntArray) -> None:
        """Say of new components which of them are sets or not tracked."""
        if name not in self.folded and is_set(components).any():
            self.folded.add(name)
        if name not in self.loose and (components == LOOSE).any():
            self.loose.add(name)

    def union(self, left: IntArray, right: IntArray, *, summing: bool = False, over: Collection[str] = ()) -> IntArray:
        """Records with the components of both, the left's first; all marks are values.

        summing: sets unite, without which two that differ are not tracked; over: names of which integers that differ
        make a set.
        """
        ours, theirs = left.ravel(), right.ravel()
        columns: dict[str, IntArray] = {}
        gains, differs = np.zeros(ours.shape, np.bool_), np.zeros(ours.shape, np.bool_)
        for name in self.names:
            one, other = self.get(name, ours), self.get(name, theirs)
            found = np.where(one == MISSING, other, one)
            if name in self.folded or name in self.loose or name in over:
                found = self._joined(name, one, other, found, summing=summing, over=name in over)
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

    def _joined(
        self, name: str, one: IntArray, other: IntArray, found: IntArray, *, summing: bool, over: bool
    ) -> IntArray:
        """The components of a name of which some are sets: an integer stands before a set, which it closes."""
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
            found[at] = self.sets.united(pair) if summing else LOOSE
        found[unlike & ((one == LOOSE) | (other == LOOSE))] = LOOSE
        self.note(name, found)
        return found

    def closed(self, marks: IntArray) -> IntArray:
        """The records without their sets: what they sum over is complete."""
        result = marks
        for name in self.folded:
            column = self.get(name, result)
            sets = is_set(column) & (result > 0)
            if sets.any():
                result = self._without(name, result, sets)
        return result

    def untracked(self, marks: IntArray, where: BoolArray) -> IntArray:
        """The records, of which nothing is known of their sets where this says so."""
        where = where & (marks > 0)
        if not where.any():
            return marks
        old, back = np.unique(marks[where], return_inverse=True)
        columns = {name: self.get(name, old) for name in self.names}
        columns = {name: np.where(is_set(column), LOOSE, column) for name, column in columns.items()}
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
        self._standing[first : first + old.size] = self._standing[old]
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
        self._standing = np.concatenate([self._standing, np.zeros(more, np.int64)])
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
