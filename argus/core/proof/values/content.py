"""The abstract domain of cell contents.

    Number(value)          this number in every element
    Data(record, inside)   the element with this record where all of `inside` hold, else padding
    Top(reason)            unknown
    Content                pieces: one of these per set of elements (mask) and condition on symbols (guard)

Nothing turns Top into Data.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from argus.core import algebra
from argus.core.algebra import any_of, lt
from argus.core.index import Cond, Index, Symbol
from argus.core.proof.dataflow.affine import coordinate_axes
from argus.core.proof.dataflow.separable_index import (
    FragmentIndex,
    Piecewise,
)
from argus.core.proof.dataflow.timeline import Shift
from argus.core.walk import substitute

COUNTED = Symbol("x", "fresh")
"""The arbitrary number x whose count c(x), how often it was summed, stands for a set."""
BoolArray = npt.NDArray[np.bool_]
Names = tuple[tuple[str, Index], ...]
"""Named expressions over coordinates; a name may occur more than once."""


@frozen(eq=False)
class Inside:
    """`0 <= coordinate < extent`, element by element. open: only `coordinate < extent`, as in a mask."""

    coordinate: FragmentIndex
    extent: Index
    open: bool = False

    def shifted(self, shift: Shift) -> Inside:
        return evolve(self, coordinate=self.coordinate.shifted(shift), extent=substitute(self.extent, shift))

    def of(self, coordinate: Index) -> Cond:
        """The bound for an element with this coordinate."""
        below = algebra.lt(coordinate, self.extent)
        return below if self.open else algebra.all_of((algebra.le(0, coordinate), below))


@frozen(eq=False)
class Top:
    reason: str


@frozen(eq=False)
class Number:
    """A literal of the program, or what is computed from literals and indices: NaN if that is not one known number.

    0 is the identity of sums, -inf the identity of maxima.
    """

    value: float


Sets = Mapping[str, Index | None]
"""c(x) for each contracted name, over the coordinates of the element and `COUNTED`; None if it has no form."""


@frozen(eq=False)
class Data:
    """An element with known tags, or a value computed from such elements.

    record: the tags. inside: bounds within which it is the element; padding elsewhere.
    sets: for each contracted name, how often each number was summed.
    form: the computation as text.
    closed: the sets of sums from which a value that is no longer a sum was computed.
    scales: names carried only by the scales of a sum, which may differ between its summands, such as a block of k.
    loose: bounds outside of which the element is an arbitrary number that nothing here describes.
    """

    record: Mapping[str, FragmentIndex]
    inside: tuple[Inside, ...] = ()
    sets: Sets | None = None
    form: str = ""
    closed: tuple[tuple[str, Index | None], ...] = ()
    scales: frozenset[str] = frozenset()
    loose: tuple[Inside, ...] = ()

    @property
    def counts(self) -> tuple[tuple[str, Index | None], ...]:
        """All sets of the value, by name."""
        return (*(self.sets or {}).items(), *self.closed)

    def shifted(self, shift: Shift) -> Data:
        """The value in the iteration given by `shift`."""
        record = {name: sep.shifted(shift) for name, sep in self.record.items()}
        inside, loose = (tuple(i.shifted(shift) for i in bounds) for bounds in (self.inside, self.loose))
        sets = None if self.sets is None else {name: _shifted(each, shift) for name, each in self.sets.items()}
        closed = tuple((name, _shifted(each, shift)) for name, each in self.closed)
        return evolve(self, record=record, inside=inside, sets=sets, closed=closed, loose=loose)


def _shifted(count: Index | None, shift: Shift) -> Index | None:
    return None if count is None else substitute(count, shift)


@frozen(eq=False)
class TensorData:
    """The content of a tensor after a launch, as a function of the element's coordinates.

    record: expressions over coordinates. sets: c(x) for each contracted name, over coordinates and `COUNTED`.
    inside: pairs (expression over coordinates, extent); an element is padding `fill` where one is not below its extent.
    form: as in `Data`.
    """

    record: Mapping[str, Index]
    sets: Mapping[str, Index]
    form: str = ""
    inside: tuple[tuple[Index, Index], ...] = ()
    fill: float = 0.0

    @property
    def names(self) -> Names:
        """What tells elements apart: the tags, and under its name each coordinate on which a contracted set depends."""
        sets = tuple((name, algebra.coord(axis)) for name, c in self.sets.items() for axis in coordinate_axes(c))
        return (*self.record.items(), *sets)


TensorContent = TensorData | Number | Top
Value = Top | Number | Data


@frozen(eq=False)
class Piece:
    """The elements of `mask` hold `value` when `guard` is true."""

    mask: BoolArray
    guard: Cond
    value: Value


Content = tuple[Piece, ...]


def uniform(shape: tuple[int, int], value: Value, guard: Cond) -> Content:
    return (Piece(np.ones(shape, np.bool_), guard, value),)


def holds_once(count: Index, low: Index, high: Index) -> Cond:
    """The condition on the counted x that it was summed once if it lies in [low, high), and else never."""
    x = algebra.sym(COUNTED)
    member = algebra.all_of((algebra.le(low, x), algebra.lt(x, high)))
    return algebra.eq(count, algebra.pick(member, 1, 0))


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


def content_error(value: Value) -> str:
    """Why a value has no tags; empty if it is `Data`."""
    match value:
        case Top(reason=reason):
            return reason
        case Number():
            return "a literal carries no tags"
        case Data():
            return ""


def nonempty(inside: tuple[Inside, ...]) -> tuple[Cond, ...]:
    """That some element lies within each bound: the one with the least coordinate does if any does."""
    return tuple(
        any_of(lt(least, bound.extent) for least in dict.fromkeys(_numbers(bound.coordinate))) for bound in inside
    )


def _numbers(coordinate: FragmentIndex) -> tuple[Index, ...]:
    """Terms one of which is the least coordinate: the least of a separable index, or each case."""
    return coordinate.cases if isinstance(coordinate, Piecewise) else (coordinate.least,)
