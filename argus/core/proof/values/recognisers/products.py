"""One `Mma` under the domain: which tags meet, what the product's record is, and which k it contributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Index
from argus.core.ir import Buffer, Mma
from argus.core.layout import TV
from argus.core.proof.dataflow.affine import affine
from argus.core.proof.dataflow.separable_index import (
    FragmentIndex,
    Piecewise,
    Separable,
    cases_of,
    distinct_columns,
    from_cases,
    numeric,
)
from argus.core.proof.dataflow.timeline import is_whole
from argus.core.proof.values.content import Data, Inside
from argus.core.proof.values.multiset_count import COUNTED, Multiset, make_run, merge_runs
from argus.core.proof.values.recognisers.splits import always
from argus.core.proof.values.recognisers.standing import Weight, families, one_along
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
    """`times` contributions of every x with low <= x < high that also satisfies `rest`."""

    times: int
    low: Index
    high: Index
    rest: Cond

    @property
    def count(self) -> Index:
        x = algebra.sym(COUNTED)
        here = algebra.all_of((algebra.le(self.low, x), algebra.lt(x, self.high), self.rest))
        return algebra.pick(here, self.times, 0)


def one_sum(products: Iterable[Product]) -> str:
    """Why products are not summed as one: over names, or of tensors, that differ; empty if they are."""
    known = tuple(products)
    if len({each.contracted for each in known}) != 1:
        return "one accumulator sums over different names"
    return "one accumulator sums products of different tensors" if len({each.root for each in known}) != 1 else ""


def tally_of(terms: Iterable[Term]) -> Multiset:
    """The same contributions as runs that all elements count alike."""
    runs = (make_run(t.low, t.high, t.rest, np.array([[t.times]], np.int64), None) for t in terms)
    return Multiset(merge_runs(each for each in runs if each is not None))


@frozen(eq=False)
class Product:
    """What one `Mma` adds: the record of each accumulator element, and contributions of contracted names.

    inside: conditions on the accumulator's elements; where one fails the element receives only zeros. weighed: the
    operand that is a weight of a softmax, if one is (`softmax`). root, factors: what is multiplied; form: the same in
    words.
    """

    record: dict[str, FragmentIndex]
    inside: tuple[Inside, ...]
    contracted: str
    terms: tuple[Term, ...]
    fill: float = 0.0
    weighed: Data | None = None
    root: str = ""
    form: str = ""
    loose: tuple[Inside, ...] = ()
    factors: tuple[Buffer, ...] = ()


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
        self._stmt = stmt
        self._a = Operand(a, holders(stmt, "a"))
        self._b = Operand(b, holders(stmt, "b"))
        self._c = operands(stmt.atom, stmt.tiling, "c")
        self._shape = fragment_shape(stmt)
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

    def product(self) -> Product | str:
        """What the statement adds, presuming that shared names agree; or why that has no form here."""
        if any(side.data.inside and side.data.fill != 0 for side in (self._a, self._b)):
            return "an operand is padded with another number than 0, which a sum would notice"
        for side in (self._a, self._b):
            if side.data.sets:
                return f"an operand is itself a {side.data.form}, whose sets a product does not carry yet"
            if side is self._weight:
                continue
            if not side.data.plain:
                return f"an operand is {side.data.form}, of which a product has no rule yet in the verifier"
            if side.data.computed:
                return f"an operand was computed, as {side.data.form}: its products are not those of what was loaded"
        name = self._counted()
        if name is None:
            return f"{len(self.contracted)} names vary along k in both operands, one is expected"
        record: dict[str, FragmentIndex] = {}
        for side, axis in ((self._a, 0), (self._b, 1)):
            for other, sep in side.data.record.items():
                if other in self.contracted:
                    continue
                spread = self._over_accumulator(side, sep, axis)
                if spread is None:
                    return f"tag `{other}` varies along k, but only in one operand"
                record[other] = spread
        loose = self._loose()
        if loose is None:
            return "padding of another number than the mask's is summed"
        split = self._split_bounds(name)
        if isinstance(split, str):
            return split
        inside, rest = split
        terms = self._terms(name, rest)
        if isinstance(terms, str):
            return terms
        if self._weight is not None and not one_along(self._weight.data.standing, name):
            return f"exponentials are summed over `{name}`, in which they may have different references"
        weighed = None if self._weight is None else self._moved(self._weight)
        if isinstance(weighed, str):
            return weighed
        both = self._both
        root, form = (" * ".join(told) for told in ([data.root for data in both], [data.form for data in both]))
        factors = (*both[0].factors, *both[1].factors)
        made = Product(record, inside, name, terms, weighed=weighed, root=root, form=form)
        return evolve(made, loose=tuple(loose), factors=factors)

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

    @property
    def _weight(self) -> Operand | None:
        """The one operand that is made of exponentials of one row, with the row's one reference."""
        sides = [side for side in (self._a, self._b) if isinstance(side.data.standing, Weight) and not side.data.sets]
        if len(sides) != 1:
            return None
        tallies = [tally for family in families(sides[0].data.standing) for tally in family.values()]
        tallies += [tally for _, tally in sides[0].data.closed]
        alike = all(tally.count is not None for tally in tallies)
        return sides[0] if alike else None

    def _loose(self) -> list[Inside] | None:
        """The rows of which nothing is said; None if an operand has such elements along k."""
        found: list[Inside] = []
        for side, axis in ((self._a, 0), (self._b, 1)):
            for bound in side.data.loose:
                spread = self._over_accumulator(side, bound.coordinate, axis)
                if not isinstance(spread, Separable):
                    return None
                found.append(evolve(bound, coordinate=spread))
        return found

    def _moved(self, side: Operand) -> Data | str:
        """A weight, its sets in terms of the accumulator's coordinates; or why they have no such form."""
        operand, axis = (self._stmt.a, 0) if side is self._a else (self._stmt.b, 1)
        held, places = operand.buffer.layout, list[Index]()
        if not side.data.axes:
            return side.data
        if not isinstance(held, TV) or not is_whole(operand):
            return "a part of a tile of exponentials, with sets that differ by row"
        for number, coordinate in enumerate(held.coordinates()):
            table = np.broadcast_to(coordinate, (held.threads.size(), held.values.size()))
            place = self._of_rows(side, axis, table)
            if place is None and number in side.data.axes:
                return "exponentials that differ in their reference along what is summed"
            places.append(algebra.const(0) if place is None else place)
        return side.data.at_coordinates(places)

    def _over_accumulator(self, side: Operand, sep: FragmentIndex, axis: int) -> FragmentIndex | None:
        """A row's component as a table over the accumulator's registers."""
        table = side.table(sep)
        if not _constant_over(table, _DEPTH):
            return None
        rows = table[:, :, 0, :, 0]
        spread = rows[:, :, None, :, None] if axis == 0 else rows[:, None, :, None, :]
        over = np.zeros(self._shape, np.int64)
        over[self._c.thread, self._c.value] = np.broadcast_to(spread, self._c.thread.shape)
        return from_cases(sep.cases, over) if isinstance(sep, Piecewise) else Separable(sep.base, over)

    def _split_bounds(self, name: str) -> tuple[tuple[Inside, ...], Cond] | str:
        """Bounds on rows, which concern the accumulator's element, and bounds on k, which concern x."""
        rows: list[Inside] = []
        depths: list[Cond] = []
        for side, axis in ((self._a, 0), (self._b, 1)):
            depth: list[Cond] = []
            for bound in side.data.inside:
                if always(bound):
                    continue
                spread = self._over_accumulator(side, bound.coordinate, axis)
                if spread is not None:
                    rows.append(evolve(bound, coordinate=spread))
                    continue
                tag = side.data.record[name]
                along = None if isinstance(tag, Piecewise) else self._along_counted(side, axis, tag, bound)
                if along is None:
                    return "an edge that depends on rows and k together"
                depth.append(along)
            depths.append(algebra.all_of(depth))
        if self._weight is not None:
            return tuple(rows), algebra.all_of(depths)
        if depths[0] is not depths[1]:
            return "one operand is padded along k where the other is not: 0 times what may be infinite"
        return tuple(rows), depths[0]

    def _along_counted(self, side: Operand, axis: int, tag: Separable, bound: Inside) -> Cond | None:
        """A bound on the coordinate as a bound on x, where coordinate = x + constant; of a weight, as a mask has it,
        x and what is affine in the accumulator's coordinates.
        """
        if isinstance(bound.coordinate, Piecewise):
            return None
        difference = bound.coordinate.table - tag.table
        offset: Index | None = algebra.const(int(difference.flat[0]))
        if not (difference == difference.flat[0]).all():
            offset = self._of_rows(side, axis, difference) if side is self._weight else None
        if offset is None:
            return None
        return bound.of(algebra.add(algebra.sym(COUNTED), algebra.sub(bound.coordinate.base, tag.base), offset))

    def _of_rows(self, side: Operand, axis: int, table: IntArray) -> Index | None:
        """A table over an operand as an expression over the accumulator's coordinates; None if it is none."""
        spread, held = self._over_accumulator(side, numeric(table), axis), self._stmt.target.buffer.layout
        assert isinstance(held, TV)
        return affine(spread.table, held) if isinstance(spread, Separable) else None

    def _terms(self, name: str, rest: Cond) -> tuple[Term, ...] | str:
        """The multiset of x that one element receives, as runs of consecutive numbers."""
        sep = self._a.data.record[name]
        if isinstance(sep, Piecewise):
            return f"the `{name}` summed has no one form over the elements of a tile"
        table = self._a.table(sep)
        if not _constant_over(table, (0, *_ROWS)):
            return "different rows or waves sum different k"
        numbers, times = np.unique(table[0, 0, :, 0, :], return_counts=True)
        terms: list[Term] = []
        start = 0
        for place in range(1, len(numbers) + 1):
            ends = place == len(numbers) or numbers[place] != numbers[place - 1] + 1 or times[place] != times[start]
            if ends:
                low = algebra.add(sep.base, int(numbers[start]))
                high = algebra.add(sep.base, int(numbers[place - 1]) + 1)
                terms.append(Term(int(times[start]), low, high, rest))
                start = place
        return tuple(terms)


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


def holds_once(count: Index, low: Index, high: Index) -> Cond:
    """The condition on the counted x that it was summed once if it lies in [low, high), and else never."""
    x = algebra.sym(COUNTED)
    member = algebra.all_of((algebra.le(low, x), algebra.lt(x, high)))
    return algebra.eq(count, algebra.pick(member, 1, 0))


def _apart_by(a: IntArray, b: IntArray, wanted: int) -> bool:
    """Whether every row of A and column of B that meet at one place along k differ by this number."""
    least, most = a.min(axis=_ROWS) - b.max(axis=_ROWS), a.max(axis=_ROWS) - b.min(axis=_ROWS)
    return bool((least == wanted).all() and (most == wanted).all())
