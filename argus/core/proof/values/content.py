"""The abstract domain of cell contents.

    Bottom                 uninitialised: any bits (not "unreachable")
    Number(value)          this number in every element
    Data(record, inside)   the element with this record where all of `inside` hold, else the padding `fill`
    Top(reason)            unknown
    Content                pieces: one of these per set of elements (mask) and condition on symbols (guard)

No join has Bottom as its identity, and nothing turns Top into Data.
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
from argus.core.proof.values.multiset_count import Multiset, Sets
from argus.core.proof.values.recognisers.standing import PLAIN, Standing, changed, families
from argus.core.walk import IntArray, substitute

BoolArray = npt.NDArray[np.bool_]
Names = tuple[tuple[str, Index], ...]
"""Named expressions over coordinates; a name may occur more than once."""


@frozen(eq=False)
class Inside:
    """`0 <= coordinate < extent`, element by element. open: only `coordinate < extent`, as in a mask."""

    coordinate: FragmentIndex
    extent: Index
    open: bool = False

    def at(self, index: tuple[IntArray, ...]) -> Inside:
        return evolve(self, coordinate=self.coordinate.at(index))

    def shifted(self, shift: Shift) -> Inside:
        return evolve(self, coordinate=self.coordinate.shifted(shift), extent=substitute(self.extent, shift))

    def of(self, coordinate: Index) -> Cond:
        """The bound for an element with this coordinate."""
        below = algebra.lt(coordinate, self.extent)
        return below if self.open else algebra.all_of((algebra.le(0, coordinate), below))

    def same_bound(self, other: Inside) -> bool:
        """Whether two bounds differ at most in their coordinate."""
        return self.extent is other.extent and self.open == other.open


@frozen(eq=False)
class Bottom:
    """Uninitialised. in_flight: the asynchronous statement that writes it and was not waited for, if there is one."""

    in_flight: Stmt | None = None


@frozen(eq=False)
class Top:
    reason: str


@frozen(eq=False)
class Number:
    """A literal of the program, or what is computed from literals and indices: NaN if that is not one known number.

    0 is the identity of sums, -inf the identity of maxima.
    """

    value: float


@frozen(eq=False)
class ElementProduct:
    """An element of a tensor, or a product of elements of two tensors, by their indices; 0 where a bound fails."""

    tensors: tuple[Buffer, ...]
    places: tuple[tuple[FragmentIndex, ...], ...]
    inside: tuple[Inside, ...]

    def at(self, index: tuple[IntArray, ...]) -> ElementProduct:
        places = tuple(tuple(each.at(index) for each in place) for place in self.places)
        return evolve(self, places=places, inside=tuple(bound.at(index) for bound in self.inside))

    def shifted(self, shift: Shift) -> ElementProduct:
        places = tuple(tuple(each.shifted(shift) for each in place) for place in self.places)
        return evolve(self, places=places, inside=tuple(bound.shifted(shift) for bound in self.inside))


@frozen(eq=False)
class Data:
    """An element with known tags, or a value computed from such elements.

    record: the tags. inside: bounds within which it is the element; `fill` elsewhere.
    sets: for each contracted name, the multiset of summed contributions.
    form: the computation as text. computed: whether it is more than rounding of loaded or summed values.
    standing: its role in the softmax of its row. root: the elements of which a maximum is taken, up to a factor.
    times: that factor. closed: the sets of sums from which a value that is no longer a sum was computed.
    needs: conditions under which the value is as described.
    scales: names carried only by the scales of a sum, which may differ between its summands, such as a block of k.
    loose: bounds outside of which the element is an arbitrary number that nothing here describes.
    factors: the tensor from which it was loaded, or the two tensors of whose products it is a sum; empty if computed.
    terms: the summed products one by one, where a claim lists products individually; else empty.
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
    closed: tuple[tuple[str, Multiset], ...] = ()
    needs: tuple[Cond, ...] = ()
    scales: frozenset[str] = frozenset()
    loose: tuple[Inside, ...] = ()
    factors: tuple[Buffer, ...] = ()
    terms: tuple[ElementProduct, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether it is computed from loaded values and their sums alone, without conditions or softmax parts."""
        return self.standing is PLAIN and not self.closed and not self.needs and not self.loose

    @property
    def finite(self) -> bool:
        """Whether every element is finite, provided that the loaded values are."""
        return not (self.needs or self.inside or self.loose)

    @property
    def within_bounds(self) -> Data:
        """The value restricted to elements within `loose`."""
        return evolve(self, loose=())

    def at(self, index: tuple[IntArray, ...]) -> Data:
        def there(tally: Multiset) -> Multiset:
            return tally.at(index)

        record = {name: sep.at(index) for name, sep in self.record.items()}
        inside, loose = (tuple(i.at(index) for i in bounds) for bounds in (self.inside, self.loose))
        terms = tuple(each.at(index) for each in self.terms)
        return evolve(self._with_sets(there), record=record, inside=inside, loose=loose, terms=terms)

    def at_coordinates(self, coordinates: Sequence[Index]) -> Data:
        """The value at elements of another tile, given by these coordinates."""
        needs = tuple(substitute(each, {}, coordinates) for each in self.needs)
        return evolve(self._with_sets(lambda tally: tally.at_coordinates(coordinates)), needs=needs)

    @property
    def tallies(self) -> tuple[Multiset, ...]:
        """All multisets in the value."""
        standing = (tally for family in families(self.standing) for tally in family.values())
        return (*(self.sets or {}).values(), *(tally for _, tally in self.closed), *standing)

    @property
    def axes(self) -> frozenset[int]:
        """The tile axes on whose coordinates the multisets or the needed conditions depend."""
        return coordinate_axes(*self.needs, *(node for tally in self.tallies for node in tally.expressions))

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

    def _with_sets(self, change: Callable[[Multiset], Multiset]) -> Data:
        sets = None if self.sets is None else {name: change(each) for name, each in self.sets.items()}
        closed = tuple((name, change(each)) for name, each in self.closed)
        return evolve(self, sets=sets, closed=closed, standing=changed(self.standing, change))


def drop_proved_bounds(holds: Callable[[Cond], bool], data: Data) -> Data:
    """The value without the bounds that provably hold for all elements."""

    def known(bound: Inside) -> bool:
        return holds(all_of(bound.of(end) for end in extremes(bound.coordinate)))

    return evolve(data, inside=tuple(bound for bound in data.inside if not known(bound)))


@frozen(eq=False)
class TensorData:
    """The content of a tensor after a launch, as a function of the element's coordinates.

    record: expressions over coordinates. sets: c(x) for each contracted name, over coordinates and `COUNTED`.
    inside: pairs (expression over coordinates, extent); an element is padding `fill` where one is not below its extent.
    form, computed: as in `Data`.
    """

    record: Mapping[str, Index]
    sets: Mapping[str, Index]
    form: str = ""
    computed: bool = False
    inside: tuple[tuple[Index, Index], ...] = ()
    fill: float = 0.0

    @property
    def names(self) -> Names:
        """What tells elements apart: the tags, and under its name each coordinate on which a contracted set depends."""
        sets = tuple((name, algebra.coord(axis)) for name, c in self.sets.items() for axis in coordinate_axes(c))
        return (*self.record.items(), *sets)


TensorContent = TensorData | Number | Top
Value = Bottom | Top | Number | Data


@frozen(eq=False)
class Piece:
    """The elements of `mask` hold `value` when `guard` is true."""

    mask: BoolArray
    guard: Cond
    value: Value

    def at(self, index: tuple[IntArray, IntArray]) -> Piece:
        """The piece gathered at other (thread, value) positions."""
        value = self.value.at(index) if isinstance(self.value, Data) else self.value
        return Piece(self.mask[index], self.guard, value)


Content = tuple[Piece, ...]


def uniform(shape: tuple[int, int], value: Value, guard: Cond) -> Content:
    return (Piece(np.ones(shape, np.bool_), guard, value),)


def shift_content(content: Content, shift: Shift) -> Content:
    """The content in the iteration given by `shift`."""
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


def guard_content(content: Content, guard: Cond) -> Content:
    return tuple(evolve(piece, guard=all_of((piece.guard, guard))) for piece in content)


def drop_terms(content: Content) -> Content:
    """The content without the individual terms of sums."""
    return tuple(
        evolve(piece, value=evolve(piece.value, terms=())) if isinstance(piece.value, Data) else piece
        for piece in content
    )


def content_error(value: Value) -> str:
    """Why a value has no tags; empty if it is `Data`."""
    match value:
        case Top(reason=reason):
            return reason
        case Bottom():
            return "an operand is not written, or still in flight"
        case Number():
            return "a literal carries no tags"
        case Data():
            return ""


def drop_padding(data: Data) -> Data:
    """The value with nothing known about its padding."""
    return evolve(data, inside=(), loose=(*data.loose, *data.inside))


def joint_loose_bounds(values: Sequence[Value]) -> tuple[Inside, ...]:
    """The union of the `loose` bounds of several values."""
    found: list[Inside] = []
    for bound in (bound for value in values if isinstance(value, Data) for bound in value.loose):
        if not any(
            bound.same_bound(other) and equal_indices(bound.coordinate, other.coordinate) is algebra.TRUE
            for other in found
        ):
            found.append(bound)
    return tuple(found)


def nonempty(inside: tuple[Inside, ...]) -> tuple[Cond, ...]:
    """That some element lies within each bound: the one with the least coordinate does if any does."""
    return tuple(
        any_of(lt(least, bound.extent) for least in dict.fromkeys(_numbers(bound.coordinate))) for bound in inside
    )


def _numbers(coordinate: FragmentIndex) -> tuple[Index, ...]:
    """Terms one of which is the least coordinate: the least of a separable index, or each case."""
    return coordinate.cases if isinstance(coordinate, Piecewise) else (coordinate.least,)


def unify_agents(found: Sequence[Data], agent: Symbol) -> Data | Top:
    """The contents that each agent reads as one value over the agent's number, which starts at `agent.low`.

    Components must differ from one agent to the next by a constant; Top otherwise.
    """
    assert agent.low is not None
    first, low = found[0], agent.low
    same_form = all(
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
    record = (
        {name: _of_agents([d.record[name] for d in found], agent, low) for name in first.record} if same_form else {}
    )
    places = (
        [_of_agents([d.inside[p].coordinate for d in found], agent, low) for p in range(len(first.inside))]
        if same_form
        else []
    )
    if not same_form or any(each is None for each in (*record.values(), *places)):
        return Top("the values read by different agents are not one function of the agent's number")
    bounds = zip(places, first.inside, strict=True)
    inside = tuple(evolve(i, coordinate=place) for place, i in bounds if place is not None)
    found_record = {name: sep for name, sep in record.items() if sep is not None}
    return evolve(first, record=found_record, inside=inside, terms=())


def _counts(data: Data) -> dict[str, Index | Multiset]:
    """The counts in comparable form; a multiset without a closed form equals only itself."""
    return {name: tally if tally.count is None else tally.count for name, tally in (data.sets or {}).items()}


def _of_agents(parts: Sequence[FragmentIndex], agent: Symbol, low: int) -> FragmentIndex | None:
    plain = [part for part in parts if not isinstance(part, Piecewise)]
    if len(plain) == len(parts):
        return _affine(plain, agent, low)
    first = parts[0]
    same_form = isinstance(first, Piecewise) and all(
        isinstance(part, Piecewise) and part.cases == first.cases and np.array_equal(part.table, first.table)
        for part in parts
    )
    return first if same_form else None


def _affine(parts: Sequence[Separable], agent: Symbol, low: int) -> Separable | None:
    first = parts[0]
    step = int(parts[1].table.flat[0] - first.table.flat[0]) if len(parts) > 1 else 0
    for number, part in enumerate(parts):
        if part.base is not first.base or not np.array_equal(part.table, first.table + number * step):
            return None
    moved = algebra.mul(algebra.sub(algebra.sym(agent), low), step)
    return separable(algebra.add(first.base, moved), first.table)
