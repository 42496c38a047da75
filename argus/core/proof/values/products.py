"""One `Mma` under the domain: which tags meet, and which k it contributes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Index
from argus.core.ir import Mma
from argus.core.proof.dataflow.separable_index import (
    FragmentIndex,
    Piecewise,
    Separable,
    cases_of,
    distinct_columns,
)
from argus.core.proof.values.content import Data
from argus.core.tiling import Operands, operands
from argus.core.walk import IntArray


@frozen(eq=False)
class Clash:
    """Two elements that one execution multiplies disagree in a name that both carry.

    goal: the condition that they agree; false where the tables already contradict it. a, b: (thread, value).
    """

    name: str
    goal: Cond
    a: tuple[int, int]
    b: tuple[int, int]
    contracted: bool


@frozen(eq=False)
class Term:
    """Contributions of the numbers in [low, high)."""

    low: Index
    high: Index


@frozen(eq=False)
class Operand:
    """A or B of a statement, arranged by execution: axes (wave, repeat, k repeat, row, k)."""

    data: Data
    held: Operands

    def table(self, sep: FragmentIndex) -> IntArray:
        return sep.table[self.held.thread, self.held.value]

    def place(self, at: tuple[int, ...]) -> tuple[int, int]:
        return int(self.held.thread[at]), int(self.held.value[at])


def _constant_over(table: IntArray, axes: tuple[int, ...]) -> bool:
    return bool((table.max(axis=axes, keepdims=True) == table).all())


_ROWS, _DEPTH = (1, 3), (2, 4)


def _once_a_row(table: IntArray) -> IntArray:
    """The same with one row, where all rows are alike."""
    return table[:, :1, :, :1] if _constant_over(table, _ROWS) else table


class Multiplication:
    """The meeting of two operands' records in one statement."""

    def __init__(self, stmt: Mma, a: Data, b: Data) -> None:
        self._a = Operand(a, holders(stmt, "a"))
        self._b = Operand(b, holders(stmt, "b"))
        common = [name for name in a.record if name in b.record]
        self.contracted = [name for name in common if self._varies(name)]
        self._kept = [name for name in common if name not in self.contracted]

    def _varies(self, name: str) -> bool:
        """Whether a common name changes along k in either operand."""
        sides = ((self._a, self._a.data.record[name]), (self._b, self._b.data.record[name]))
        return not all(_constant_over(side.table(sep), _DEPTH) for side, sep in sides)

    def clashes(self) -> Iterator[Clash]:
        """One condition a shared name: that the elements multiplied agree in it."""
        for name in (*self.contracted, *self._kept):
            yield self._clash(name)

    def _clash(self, name: str) -> Clash:
        sep_a, sep_b = self._a.data.record[name], self._b.data.record[name]
        if isinstance(sep_a, Piecewise) or isinstance(sep_b, Piecewise):
            return self._clash_of_cases(name, sep_a, sep_b)
        a, b = self._a.table(sep_a), self._b.table(sep_b)
        contracted = name in self.contracted
        offset = algebra.sub(sep_b.base, sep_a.base)
        wanted = offset.value if isinstance(offset, Const) else int(a.flat[0] - b.flat[0])
        if _apart_by(a, b, wanted):
            goal = algebra.eq(algebra.add(sep_a.base, wanted), sep_b.base)
            return Clash(name, goal, self._a.place((0,) * 5), self._b.place((0,) * 5), contracted)
        wrong = a[:, :, None, :, :, None, :] - b[:, None, :, :, None, :, :] != wanted
        w, i, j, kk, m, n, s = (int(x) for x in np.unravel_index(int(wrong.argmax()), wrong.shape))
        return Clash(name, algebra.FALSE, self._a.place((w, i, kk, m, s)), self._b.place((w, j, kk, n, s)), contracted)

    def _clash_of_cases(self, name: str, one: FragmentIndex, two: FragmentIndex) -> Clash:
        """The same where the elements multiplied are compared expression by expression."""
        (mine, first), (theirs, second) = cases_of(one), cases_of(two)
        a = _once_a_row(first[self._a.held.thread, self._a.held.value])[:, :, None, :, :, None, :]
        b = _once_a_row(second[self._b.held.thread, self._b.held.value])[:, None, :, :, None, :, :]
        pairs, _ = distinct_columns(np.broadcast_arrays(a, b), (len(mine), len(theirs)))
        goal = algebra.all_of(algebra.eq(mine[int(i)], theirs[int(j)]) for i, j in pairs.T)
        return Clash(name, goal, self._a.place((0,) * 5), self._b.place((0,) * 5), name in self.contracted)

    def terms(self) -> tuple[str, tuple[Term, ...]] | str:
        """The name that the statement sums over, and the numbers of it that one element receives; or why it has none.

        Presumes that shared names agree. Where elements are padding, numbers may be listed that no element has.
        """
        name = self._counted()
        if name is None:
            return f"{len(self.contracted)} names vary along k in both operands, one is expected"
        sep = self._a.data.record[name]
        if isinstance(sep, Piecewise):
            return f"the `{name}` summed has no one form over the elements of a tile"
        table = self._a.table(sep)
        if not _constant_over(table, (0, *_ROWS)):
            return "different rows or waves sum different k"
        numbers = np.unique(table[0, 0, :, 0, :])
        ends = np.flatnonzero(np.diff(numbers, append=numbers[-1] + 2) != 1)
        starts = np.concatenate(([0], ends[:-1] + 1))
        runs = [(int(numbers[start]), int(numbers[end]) + 1) for start, end in zip(starts, ends, strict=True)]
        return name, tuple(Term(algebra.add(sep.base, low), algebra.add(sep.base, high)) for low, high in runs)

    def _counted(self) -> str | None:
        """The name by which products are counted: of several that vary along k the one that has one form there, in
        which no two products are alike; operands agree in the others too, which say nothing more.
        """
        if len(self.contracted) == 1:
            return self.contracted[0]
        formed = [name for name in self.contracted if all(isinstance(d.record[name], Separable) for d in self._both)]
        return formed[0] if len(formed) == 1 else None

    @property
    def _both(self) -> tuple[Data, Data]:
        return self._a.data, self._b.data


def holders(stmt: Mma, role: str) -> Operands:
    """Who holds each element of an operand in each execution; one in shared memory is held element after element."""
    operand = stmt.atom.operands[role]
    if operand.space != "shared":
        return operands(stmt.atom, stmt.tiling, role)
    rows, k = operand.tile
    repeat = stmt.tiling.repeat[2]
    row, slot, times = np.arange(rows)[:, None], np.arange(k)[None, :], np.arange(repeat)[:, None, None]
    value = (row[None] + rows * (k * times + slot[None]))[None, None]
    return Operands(np.zeros_like(value), value)


def fragment_shape(stmt: Mma) -> tuple[int, int]:
    threads = stmt.tiling.threads * stmt.atom.unit
    values = stmt.atom.operands["c"].tv
    assert values is not None
    return threads, values.values.size() * stmt.tiling.repeat[0] * stmt.tiling.repeat[1]


def _apart_by(a: IntArray, b: IntArray, wanted: int) -> bool:
    """Whether every row of A and column of B that meet at one place along k differ by this number."""
    least, most = a.min(axis=_ROWS) - b.max(axis=_ROWS), a.max(axis=_ROWS) - b.min(axis=_ROWS)
    return bool((least == wanted).all() and (most == wanted).all())
