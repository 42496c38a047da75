"""The abstract domain: what a cell holds.

    Bottom                 never written: any bits, not "unreachable"
    Number(value)          this number in every element
    Data(record, inside)   the element with this record where all of `inside` hold, else padding `fill`
    Top(reason)            anything
    pieces                 which of these, by element (mask) and by a condition on symbols (guard)

There is no join under which Bottom is an identity, and nothing here turns Top into Data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from argus.core import algebra
from argus.core.algebra import all_of, any_of, lt
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import Buffer, Stmt
from argus.core.proof.dataflow.affine import coordinate_axes
from argus.core.proof.dataflow.separable_index import (
    FragmentIndex,
    Piecewise,
    Separable,
    equal_indices,
    extremes,
    separable,
)
from argus.core.proof.dataflow.timeline import Shift
from argus.core.proof.values.multiset_count import Sets, Tally
from argus.core.proof.values.recognisers.standing import PLAIN, Standing, changed, families
from argus.core.walk import IntArray, substitute

BoolArray = npt.NDArray[np.bool_]


@frozen(eq=False)
class Inside:
    """`0 <= coordinate < extent`, element by element; open: `coordinate < extent` alone, as a mask has it."""

    coordinate: FragmentIndex
    extent: Index
    open: bool = False

    def at(self, index: tuple[IntArray, ...]) -> Inside:
        return evolve(self, coordinate=self.coordinate.at(index))

    def shifted(self, shift: Shift) -> Inside:
        return evolve(self, coordinate=self.coordinate.shifted(shift), extent=substitute(self.extent, shift))

    def of(self, coordinate: Index) -> Cond:
        """The bound, of an element whose coordinate is this."""
        below = algebra.lt(coordinate, self.extent)
        return below if self.open else algebra.all_of((algebra.le(0, coordinate), below))

    def like(self, other: Inside) -> bool:
        """Whether two bounds differ at most in their coordinate."""
        return self.extent is other.extent and self.open == other.open


@frozen(eq=False)
class Bottom:
    """Uninitialised. `where` is the statement that would have had to be waited for, if one is in flight."""

    in_flight: Stmt | None = None


@frozen(eq=False)
class Top:
    reason: str


@frozen(eq=False)
class Number:
    """A number that the program names: 0 is nothing to a sum, -inf nothing to a maximum."""

    value: float


@frozen(eq=False)
class Multiplied:
    """An element of a tensor, or a product of elements of two, by their places; 0 where a bound does not hold."""

    tensors: tuple[Buffer, ...]
    places: tuple[tuple[FragmentIndex, ...], ...]
    inside: tuple[Inside, ...]

    def at(self, index: tuple[IntArray, ...]) -> Multiplied:
        places = tuple(tuple(each.at(index) for each in place) for place in self.places)
        return evolve(self, places=places, inside=tuple(bound.at(index) for bound in self.inside))

    def shifted(self, shift: Shift) -> Multiplied:
        places = tuple(tuple(each.shifted(shift) for each in place) for place in self.places)
        return evolve(self, places=places, inside=tuple(bound.shifted(shift) for bound in self.inside))


@frozen(eq=False)
class Data:
    """sets: for each contracted name, how often x was summed.

    form: what was computed from what was loaded or summed, in words. computed: by more than rounding. standing: what
    it is to the softmax of its row; root: what elements a maximum is taken of, whatever number they are multiplied
    by; times: that number. closed: sets of sums that went into something that is no sum. needs: presumed conditions.
    scales: names that only the scales of a sum carry, in which its summands may differ, such as a block of k.
    loose: bounds outside of which an element is any number, and nothing here speaks of it.
    factors: the tensor that it was loaded from, or the two of whose elements it sums products; none of what was
    computed. terms: what it is the sum of, element by element, where a claim tells products one by one; else none.
    """

    record: Mapping[str, FragmentIndex]
    inside: tuple[Inside, ...] = ()
    fill: float = 0.0
    sets: Sets | None = None
    form: str = ""
    computed: bool = False
    standing: Standing = PLAIN
    root: str = ""
    times: float = 1.0
    closed: tuple[tuple[str, Tally], ...] = ()
    needs: tuple[Cond, ...] = ()
    scales: frozenset[str] = frozenset()
    loose: tuple[Inside, ...] = ()
    factors: tuple[Buffer, ...] = ()
    terms: tuple[Multiplied, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether it is what was loaded, or sums of it, and things computed from these alone."""
        return self.standing is PLAIN and not self.closed and not self.needs and not self.loose

    @property
    def finite(self) -> bool:
        """Whether it is a number, and not infinite, at every element: as far as what was loaded is."""
        return not (self.needs or self.inside or self.loose)

    @property
    def within_bounds(self) -> Data:
        """The same of its elements within bounds alone."""
        return evolve(self, loose=())

    def at(self, index: tuple[IntArray, ...]) -> Data:
        def there(tally: Tally) -> Tally:
            return tally.at(index)

        record = {name: sep.at(index) for name, sep in self.record.items()}
        inside, loose = (tuple(i.at(index) for i in bounds) for bounds in (self.inside, self.loose))
        terms = tuple(each.at(index) for each in self.terms)
        return evolve(self._with_sets(there), record=record, inside=inside, loose=loose, terms=terms)

    def among(self, coordinates: Sequence[Index]) -> Data:
        """The same for elements with these coordinates, which are another tile's."""
        needs = tuple(substitute(each, {}, coordinates) for each in self.needs)
        return evolve(self._with_sets(lambda tally: tally.among(coordinates)), needs=needs)

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """All sets that it speaks of."""
        standing = (tally for family in families(self.standing) for tally in family.values())
        return (*(self.sets or {}).values(), *(tally for _, tally in self.closed), *standing)

    @property
    def axes(self) -> frozenset[int]:
        """The axes of its tile by whose coordinates its sets, or what it presumes, differ."""
        return coordinate_axes(*self.needs, *(node for tally in self.tallies for node in tally.conds))

    def shifted(self, shift: Shift) -> Data:
        record = {name: sep.shifted(shift) for name, sep in self.record.items()}
        inside = tuple(i.shifted(shift) for i in self.inside)
        needs, loose = (
            tuple(substitute(each, shift) for each in self.needs),
            tuple(i.shifted(shift) for i in self.loose),
        )
        moved = self._with_sets(lambda tally: tally.shifted(shift))
        terms = tuple(each.shifted(shift) for each in self.terms)
        return evolve(moved, record=record, inside=inside, needs=needs, loose=loose, terms=terms)

    def _with_sets(self, change: Callable[[Tally], Tally]) -> Data:
        sets = None if self.sets is None else {name: change(each) for name, each in self.sets.items()}
        closed = tuple((name, change(each)) for name, each in self.closed)
        return evolve(self, sets=sets, closed=closed, standing=changed(self.standing, change))


def unpadded(holds: Callable[[Cond], bool], data: Data) -> Data:
    """The same without the bounds that are known to hold of all elements."""

    def known(bound: Inside) -> bool:
        return holds(all_of(bound.of(end) for end in extremes(bound.coordinate)))

    return evolve(data, inside=tuple(bound for bound in data.inside if not known(bound)))


@frozen(eq=False)
class Crossed:
    """What a launch leaves in a tensor, for the launches after it, element by element.

    record: expressions over coordinates. sets: for each contracted name c(x), over coordinates and `COUNTED`.
    inside: pairs of an expression over coordinates and an extent; where one is not below its extent there is padding
    `fill`. form, computed: as of `Data`.
    """

    record: Mapping[str, Index]
    sets: Mapping[str, Index]
    form: str = ""
    computed: bool = False
    inside: tuple[tuple[Index, Index], ...] = ()
    fill: float = 0.0


Left = Crossed | Number | Top
Value = Bottom | Top | Number | Data


@frozen(eq=False)
class Piece:
    """The elements of `mask` hold `value` when `guard` is true."""

    mask: BoolArray
    guard: Cond
    value: Value

    def at(self, index: tuple[IntArray, IntArray]) -> Piece:
        """The same looked up at other (thread, value) places."""
        value = self.value.at(index) if isinstance(self.value, Data) else self.value
        return Piece(self.mask[index], self.guard, value)


Content = tuple[Piece, ...]


def everywhere(shape: tuple[int, int], value: Value, guard: Cond) -> Content:
    return (Piece(np.ones(shape, np.bool_), guard, value),)


def shifted(content: Content, shift: Shift) -> Content:
    """The content of the iteration that `shift` speaks of."""
    if not shift:
        return content
    return tuple(
        Piece(
            piece.mask,
            substitute(piece.guard, shift),
            piece.value.shifted(shift) if isinstance(piece.value, Data) else piece.value,
        )
        for piece in content
    )


def guarded(content: Content, guard: Cond) -> Content:
    return tuple(evolve(piece, guard=all_of((piece.guard, guard))) for piece in content)


def whole_only(content: Content) -> Content:
    """The same, with nothing told of what each element is the sum of."""
    return tuple(
        evolve(piece, value=evolve(piece.value, terms=())) if isinstance(piece.value, Data) else piece
        for piece in content
    )


def why_not(value: Value) -> str:
    """What keeps a value from being a record; empty if it is one."""
    match value:
        case Top(reason=reason):
            return reason
        case Bottom():
            return "an operand is not written, or still in flight"
        case Number():
            return "a number that the program names carries no record"
        case Data():
            return ""


def loosened(data: Data) -> Data:
    """The same with nothing said of padding."""
    return evolve(data, inside=(), loose=(*data.loose, *data.inside))


def both_loose(values: Sequence[Value]) -> tuple[Inside, ...]:
    """The bounds outside of which one of several values is any number, each once."""
    found: list[Inside] = []
    for bound in (bound for value in values if isinstance(value, Data) for bound in value.loose):
        if not any(
            bound.like(other) and equal_indices(bound.coordinate, other.coordinate) is algebra.TRUE for other in found
        ):
            found.append(bound)
    return tuple(found)


def some_element(inside: tuple[Inside, ...]) -> tuple[Cond, ...]:
    """The assertion speaks of elements within bounds; at least one is, where its least coordinate is."""
    return tuple(
        any_of(lt(least, bound.extent) for least in dict.fromkeys(_numbers(bound.coordinate))) for bound in inside
    )


def _numbers(coordinate: FragmentIndex) -> tuple[Index, ...]:
    """The least of a form, or each case: what some element's coordinate is."""
    return coordinate.cases if isinstance(coordinate, Piecewise) else (coordinate.least,)


def over_agents(found: Sequence[Data], agent: Symbol) -> Data | Top:
    """One form over an agent's number, of what each agent finds, the first being number `agent.low`; Top if there is
    none: components must differ from agent to agent by the same number.
    """
    assert agent.low is not None
    first, low = found[0], agent.low
    alike = all(
        (
            d.record.keys(),
            d.fill,
            d.form,
            d.computed,
            [(i.extent, i.open) for i in d.inside],
            d.plain,
            d.scales,
            d.factors,
            _counts(d),
        )
        == (
            first.record.keys(),
            first.fill,
            first.form,
            first.computed,
            [(i.extent, i.open) for i in first.inside],
            True,
            first.scales,
            first.factors,
            _counts(first),
        )
        for d in found
    )
    record = {name: _of_agents([d.record[name] for d in found], agent, low) for name in first.record} if alike else {}
    places = (
        [_of_agents([d.inside[p].coordinate for d in found], agent, low) for p in range(len(first.inside))]
        if alike
        else []
    )
    if not alike or any(each is None for each in (*record.values(), *places)):
        return Top("what agents read has no one form over their numbers")
    bounds = zip(places, first.inside, strict=True)
    inside = tuple(evolve(i, coordinate=place) for place, i in bounds if place is not None)
    found_record = {name: sep for name, sep in record.items() if sep is not None}
    return evolve(first, record=found_record, inside=inside, terms=())


def _counts(data: Data) -> dict[str, Index | Tally]:
    """What is counted, in a form that can be compared; a tally without one is like itself alone."""
    return {name: tally if tally.count is None else tally.count for name, tally in (data.sets or {}).items()}


def _of_agents(parts: Sequence[FragmentIndex], agent: Symbol, low: int) -> FragmentIndex | None:
    plain = [part for part in parts if not isinstance(part, Piecewise)]
    if len(plain) == len(parts):
        return _affine(plain, agent, low)
    first = parts[0]
    alike = isinstance(first, Piecewise) and all(
        isinstance(part, Piecewise) and part.cases == first.cases and np.array_equal(part.table, first.table)
        for part in parts
    )
    return first if alike else None


def _affine(parts: Sequence[Separable], agent: Symbol, low: int) -> Separable | None:
    first = parts[0]
    step = int(parts[1].table.flat[0] - first.table.flat[0]) if len(parts) > 1 else 0
    for number, part in enumerate(parts):
        if part.base is not first.base or not np.array_equal(part.table, first.table + number * step):
            return None
    moved = algebra.mul(algebra.sub(algebra.sym(agent), low), step)
    return separable(algebra.add(first.base, moved), first.table)
