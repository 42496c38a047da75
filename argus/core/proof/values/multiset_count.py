"""Multisets of contributions to a reduction: c(x), how often x was summed, for each element of a register tile.

A run counts the numbers of [low, high) that satisfy `rest`. Where threads hold different parts of a run, a periodic
pattern says which numbers each counts. `rest` may depend on the element's coordinates in its tile (`Coord`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import And, Cmp, Cond, Coord, Index, Symbol
from argus.core.proof.dataflow.timeline import Loop, Shift
from argus.core.walk import IntArray, mentions, substitute, symbols

COUNTED = Symbol("x", "fresh")
"""The arbitrary contribution x whose count c(x) is computed."""


@frozen(eq=False)
class Run:
    """A range of counted numbers.

    patterns: shape (kinds, period), how often low + j is counted, with j modulo the period. which: the kind of each
    element, shape (thread, value); None if there is one kind.
    """

    low: Index
    high: Index
    rest: Cond
    patterns: IntArray
    which: IntArray | None = None

    @property
    def period(self) -> int:
        return self.patterns.shape[1]

    @property
    def uniform(self) -> bool:
        """Whether all elements count all numbers of the run equally often."""
        return self.which is None and self.period == 1

    def at(self, index: tuple[IntArray, ...]) -> Run:
        return self if self.which is None else evolve(self, which=self.which[index])

    def shifted(self, shift: Shift) -> Run:
        low, high = substitute(self.low, shift), substitute(self.high, shift)
        return evolve(self, low=low, high=high, rest=substitute(self.rest, shift))

    def at_coordinates(self, coordinates: Sequence[Index]) -> Run:
        """The run at elements of another tile, given by these coordinates."""
        low, high = substitute(self.low, {}, coordinates), substitute(self.high, {}, coordinates)
        return evolve(self, low=low, high=high, rest=substitute(self.rest, {}, coordinates))

    @property
    def member(self) -> Cond:
        x = algebra.sym(COUNTED)
        return algebra.all_of((algebra.le(self.low, x), algebra.lt(x, self.high), self.rest))

    def same_pattern(self, other: Run) -> bool:
        """Whether two runs are equal up to their bounds."""
        if self.rest is not other.rest or not np.array_equal(self.patterns, other.patterns):
            return False
        if self.which is None or other.which is None:
            return self.which is other.which
        return np.array_equal(self.which, other.which)


def make_run(low: Index, high: Index, rest: Cond, patterns: IntArray, which: IntArray | None) -> Run | None:
    """A run in normal form: only kinds that occur, each once; None if nothing is counted."""
    if which is not None:
        patterns, which = _kinds(patterns, which)
        if len(patterns) == 1:
            which = None
    if not patterns.any():
        return None
    if which is None and bool((patterns == patterns[0, 0]).all()):
        patterns = patterns[:, :1]
    return Run(low, high, rest, patterns, which)


def _kinds(patterns: IntArray, which: IntArray) -> tuple[IntArray, IntArray]:
    """The patterns that occur, without duplicates, in the order of their first element."""
    used, first = np.unique(which, return_index=True)
    number: dict[bytes, int] = {}
    distinct: list[int] = []
    place = np.zeros(len(patterns), np.int64)
    for kind in used[np.argsort(first)].tolist():
        content = patterns[kind].tobytes()
        if content not in number:
            number[content] = len(distinct)
            distinct.append(kind)
        place[kind] = number[content]
    return patterns[distinct], place[which]


_NOTHING = algebra.const(0)


@frozen(eq=False)
class Multiset:
    """The sum of runs and of a count in any other form."""

    runs: tuple[Run, ...] = ()
    other: Index = _NOTHING

    def at(self, index: tuple[IntArray, ...]) -> Multiset:
        return evolve(self, runs=tuple(each.at(index) for each in self.runs))

    def shifted(self, shift: Shift) -> Multiset:
        runs = (each.shifted(shift) for each in self.runs)
        return Multiset(tuple(each for each in runs if each.low is not each.high), substitute(self.other, shift))

    def at_coordinates(self, coordinates: Sequence[Index]) -> Multiset:
        runs = tuple(each.at_coordinates(coordinates) for each in self.runs)
        return Multiset(runs, substitute(self.other, {}, coordinates))

    @property
    def count(self) -> Index | None:
        """c(x); None if it differs between elements by more than their coordinates."""
        if not all(each.uniform for each in self.runs):
            return None
        parts = [algebra.pick(each.member, int(each.patterns[0, 0]), 0) for each in self.runs]
        return algebra.add(self.other, *parts) if parts else self.other

    def prefix_runs(self, own: Callable[[IntArray], Index | None]) -> Multiset:
        """The multiset with prefix patterns rewritten as runs whose upper bounds depend on the elements' coordinates.

        own: converts a table over the elements to an expression over their coordinates, where there is one.
        """
        return Multiset(tuple(prefix_run(each, own) for each in self.runs), self.other)

    @property
    def is_uniform(self) -> bool:
        """Whether c(x) is the same for all elements of the tile."""
        return self.count is not None and not mentions(self.count, (Coord,))

    @property
    def support(self) -> Multiset:
        """The numbers as a set, without multiplicity: what a maximum depends on."""
        runs = (make_run(e.low, e.high, e.rest, np.minimum(e.patterns, 1), e.which) for e in self.runs)
        return Multiset(merge_runs([each for each in runs if each is not None]), self.other)

    def plus(self, other: Multiset) -> Multiset:
        return Multiset(merge_runs(_add_patterns([*self.runs, *other.runs])), algebra.add(self.other, other.other))

    @property
    def nonempty(self) -> Cond:
        """A sufficient condition for the multiset to be nonempty; false if none is known."""
        x = {COUNTED: self.runs[0].low} if self.runs else {}
        found = [substitute(each.member, {COUNTED: each.low}) for each in self.runs if each.uniform]
        return algebra.any_of(found) if x else algebra.FALSE

    @property
    def expressions(self) -> tuple[Index | Cond, ...]:
        """All expressions in the multiset."""
        return (self.other, *(n for each in self.runs for n in (each.low, each.high, each.rest)))

    @property
    def symbols(self) -> frozenset[Symbol]:
        return symbols(self.other, *(n for each in self.runs for n in (each.low, each.high, each.rest)))


def _add_patterns(runs: Iterable[Run]) -> list[Run]:
    """Merges runs over the same range with different patterns by adding the patterns."""
    found: list[Run] = []
    for each in runs:
        made: Run | None = None
        for place, other in enumerate(found):
            made = _both(other, each)
            if made is not None:
                found[place] = made
                break
        if made is None:
            found.append(each)
    return found


def _both(one: Run, two: Run) -> Run | None:
    if one.low is not two.low or one.high is not two.high or one.rest is not two.rest:
        return None
    if one.which is None or two.which is None or one.which.shape != two.which.shape or one.period != two.period:
        return None
    pairs, back = np.unique(np.stack([one.which.ravel(), two.which.ravel()]), axis=1, return_inverse=True)
    patterns = one.patterns[pairs[0]] + two.patterns[pairs[1]]
    return make_run(one.low, one.high, one.rest, patterns, back.reshape(one.which.shape))


def prefix_run(each: Run, own: Callable[[IntArray], Index | None]) -> Run:
    """A run of which each element counts a prefix, with the prefix length as an expression; other runs unchanged.

    own: converts a table over the elements to an expression over their coordinates, where there is one.
    """
    if each.which is None or algebra.sub(each.high, each.low) is not algebra.const(each.period):
        return each
    many = each.patterns.sum(axis=1)
    if not np.array_equal(each.patterns, np.arange(each.period)[None, :] < many[:, None]):
        return each
    upto = own(many[each.which])
    if upto is None:
        return each
    high = algebra.add(each.low, upto)
    return Run(each.low, high, each.rest, np.ones((1, 1), np.int64), None)


def merge_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The runs with adjacent ones joined."""
    found: list[Run] = []
    for each in runs:
        new = each
        place = next((p for p, other in enumerate(found) if _joined(other, new) is not None), None)
        while place is not None:
            joined = _joined(found.pop(place), new)
            assert joined is not None
            new = joined
            place = next((p for p, other in enumerate(found) if _joined(other, new) is not None), None)
        found.append(new)
    return tuple(found)


def _joined(one: Run, two: Run) -> Run | None:
    if not one.same_pattern(two):
        return None
    for first, second in ((one, two), (two, one)):
        if first.high is second.low and _in_phase(first, second):
            return evolve(first, high=second.high)
    return None


def _in_phase(first: Run, second: Run) -> bool:
    return algebra.mod(algebra.sub(second.low, first.low), first.period) is algebra.const(0)


def equal_counts(one: Multiset, two: Multiset) -> Cond:
    """A condition on x for both to count it equally often, at every element; false if no condition is known."""
    loose = [each for each in two.runs if not each.uniform]
    goals: list[Cond] = []
    for mine in one.runs:
        if mine.uniform:
            continue
        theirs = next((each for each in loose if each.same_pattern(mine)), None)
        if theirs is None:
            return algebra.FALSE
        loose.remove(theirs)
        goals += [algebra.eq(mine.low, theirs.low), algebra.eq(mine.high, theirs.high)]
    if loose:
        return algebra.FALSE
    rest = [Multiset(tuple(e for e in each.runs if e.uniform), each.other).count for each in (one, two)]
    assert rest[0] is not None
    assert rest[1] is not None
    return algebra.all_of((*goals, algebra.eq(rest[0], rest[1])))


def subset_count(one: Multiset, two: Multiset) -> Cond:
    """A sufficient condition on x, at every element, for the second to count what the first counts."""
    equal, theirs = equal_counts(one, two), two.count
    if equal is algebra.TRUE or theirs is None:
        return equal
    whole = [algebra.pick(each.member, 1, 0) for each in one.runs]
    mine = algebra.add(one.other, *whole) if whole else one.other
    return algebra.implies(algebra.le(1, mine), algebra.le(1, theirs))


def telescope_run(each: Run, loop: Loop) -> Run | None:
    """The run counted before iteration k by a loop whose iterations each count `each`; None without a closed form.

    Before the first iteration that counts anything, the run is empty, with its bounds reversed.
    """
    known = first_iteration(each.rest, loop)
    if known is None or algebra.mod(algebra.sub(each.high, each.low), each.period).range != (0, 0):
        return None
    rest, first = known
    ahead = {loop.symbol: algebra.add(algebra.sym(loop.symbol), loop.stmt.step)}
    start = {loop.symbol: first}
    length = algebra.sub(each.high, each.low).range
    if length[0] is None or length[0] < 0:
        return None
    if substitute(each.low, ahead) is each.high:
        return evolve(each, low=substitute(each.low, start), high=each.low, rest=rest)
    if substitute(each.high, ahead) is each.low:
        return evolve(each, low=each.high, high=substitute(each.high, start), rest=rest)
    return None


def first_iteration(rest: Cond, loop: Loop) -> tuple[Cond, Index] | None:
    """The part of a condition on x alone, and the first iteration from which the rest holds.

    None if the rest is not of the form "from some iteration on".
    """
    independent: list[Cond] = []
    first = loop.stmt.start
    for part in rest.parts if isinstance(rest, And) else (rest,):
        if loop.symbol not in symbols(part):
            independent.append(part)
            continue
        since = _holds_from(part, loop)
        if since is None:
            return None
        first = (algebra.maximum if loop.stmt.step > 0 else algebra.minimum)(first, since)
    return algebra.all_of(independent), first


def _holds_from(cond: Cond, loop: Loop) -> Index | None:
    """The iteration from which a condition on the loop variable holds; None if it has another form."""
    k, step = algebra.sym(loop.symbol), loop.stmt.step
    if cond is algebra.negate(algebra.eq(k, loop.stmt.start)):
        return algebra.add(loop.stmt.start, step)
    if not isinstance(cond, Cmp) or cond.op != "<=" or abs(step) != 1:
        return None
    since = algebra.sub(k, algebra.mul(algebra.sub(cond.right, cond.left), step))
    return None if {loop.symbol, COUNTED} & symbols(since) else since


Sets = Mapping[str, Multiset]


def equal_sets(one: Sets, two: Sets) -> Cond:
    """A condition for two families of multisets to be equal; false if no condition is known."""
    if one.keys() != two.keys():
        return algebra.FALSE
    return algebra.all_of(equal_counts(one[name], two[name]) for name in one)
