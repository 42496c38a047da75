"""What a statement touches of a buffer, and where two accesses meet.

A coordinate that is the same for all threads is a slot (`k % 2` of a double buffer): slots are compared as
expressions. Coordinates that vary over threads and values are cells: compared by tables of numbers.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Literal

import numpy as np
import numpy.typing as npt
from attrs import evolve, field, frozen

from argus.core import algebra
from argus.core.check import claim_views
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import Assert, Buffer, Copy, Fold, Get, Map, Mma, Stmt, View, static
from argus.core.ir.element_walk import gets
from argus.core.layout import TV, Layout
from argus.core.proof.dataflow.footprints import AxisRange, AxisRanges, CellTables
from argus.core.proof.dataflow.piecewise_index import evaluate_piecewise
from argus.core.proof.dataflow.separable_index import FragmentIndex, Separable, evaluate_separable, frozen_copy, numeric
from argus.core.proof.dataflow.timeline import Shift, Step, Timeline, is_gathered, is_shuffle, is_whole
from argus.core.walk import IntArray, substitute
from argus.core.walk import evaluate as valued

Mode = Literal["read", "write"]


@frozen(eq=False)
class Access:
    """One side of one step.

    places: per buffer axis, the coordinate of element (thread, value); None where it does not come apart. Registers
    have one axis, thread times values plus value. by: who moves what. mask: the elements that are moved at all, where
    not all are. gathered: of a load from a tensor, its places whether they come apart or not.
    """

    step: Step
    view: View
    mode: Mode
    places: tuple[Separable, ...] | None
    shape: tuple[int, int]
    by: TV | None = None
    mask: npt.NDArray[np.bool_] | None = None
    gathered: tuple[FragmentIndex, ...] | None = None
    _numbered: dict[tuple[AxisRanges, int], IntArray] = field(
        factory=dict[tuple[AxisRanges, int], IntArray], init=False, repr=False
    )
    _met: dict[tuple[Access, AxisRanges], CellTables] = field(
        factory=dict["tuple[Access, AxisRanges]", CellTables], init=False, repr=False
    )

    @property
    def moved(self) -> npt.NDArray[np.bool_]:
        """The elements that are moved."""
        return np.ones(self.shape, np.bool_) if self.mask is None else self.mask

    def cells(self, spans: AxisRanges, beyond: int) -> IntArray:
        """Element by element the number of its cell; of what is not moved, one from `beyond` on that is its own."""
        key = spans, (0 if self.mask is None else beyond)
        if key not in self._numbered:
            assert self.places is not None
            cells = np.zeros(self.shape, np.int64)
            for axis, low, size in spans:
                cells = cells * size + (self.places[axis].table - low)
            self._numbered[key] = _apart(cells, self.mask, beyond)
        return self._numbered[key]

    def cells_with(self, other: Access, own: AxisRanges, others: AxisRanges) -> CellTables:
        """The cells of two accesses over the same axes."""
        key = other, others
        if key not in self._met or self._met[key].spans != own:
            count = prod(size for _, _, size in own)
            first, second = self.cells(own, count), other.cells(others, count + prod(self.shape))
            self._met[key] = CellTables(own, first, second)
        return self._met[key]


@frozen(eq=False)
class Overlap:
    """Where two accesses of one buffer touch the same cells: slots is the condition that their symbolic coordinates
    agree.
    """

    slots: Cond
    cells: CellTables


def overlap(first: Access, second: Access, shift: Shift) -> Overlap | None:
    """How two accesses meet when `second` is in the iteration `shift` speaks of; None if it cannot be told.

    An axis on which either varies over cells is compared by tables, which needs one symbolic part.
    """
    if first.places is None or second.places is None:
        return None
    slots: list[Cond] = []
    own: list[AxisRange] = []
    others: list[AxisRange] = []
    for axis, (mine, theirs) in enumerate(zip(first.places, second.places, strict=True)):
        moved = theirs.shifted(shift)
        if mine.uniform and moved.uniform:
            slots.append(algebra.eq(mine.least, moved.least))
            continue
        if mine.base is not moved.base:
            return None
        low = min(mine.low, moved.low)
        size = max(mine.high, moved.high) - low + 1
        own.append((axis, low, size))
        others.append((axis, low - (moved.low - theirs.low), size))
    return Overlap(algebra.all_of(slots), first.cells_with(second, tuple(own), tuple(others)))


def _apart(cells: IntArray, mask: npt.NDArray[np.bool_] | None, beyond: int) -> IntArray:
    """Elements that are not moved, each in a cell of its own that nothing else touches."""
    return cells if mask is None else np.where(mask, cells, beyond + np.arange(cells.size).reshape(cells.shape))


@frozen
class ViewAccess:
    view: View
    mode: Mode
    by: TV


def view_accesses(stmt: Stmt) -> tuple[ViewAccess, ...]:
    """The views a statement reads, then those it writes, with who holds what."""
    match stmt:
        case Copy(source=source, target=target) if is_shuffle(stmt):
            return ViewAccess(whole_view(source.buffer), "read", _held(source)), ViewAccess(
                target, "write", _held(target)
            )
        case Copy(source=source, target=target, by=by):
            return ViewAccess(source, "read", by), ViewAccess(target, "write", by)
        case Map(target=target, elem=elem):
            layout = _held(target)
            reads = [ViewAccess(_under(get, target), "read", layout) for get in gets(elem)]
            return *reads, ViewAccess(target, "write", layout)
        case Fold(target=target, source=source):
            return ViewAccess(source, "read", _held(source)), ViewAccess(target, "write", _held(target))
        case Mma(target=target, a=a, b=b):
            reads = [ViewAccess(view, "read", _operand(view)) for view in (a, b, target)]
            return *reads, ViewAccess(target, "write", _held(target))
        case _:
            return ()


def whole_view(buffer: Buffer) -> View:
    """All of a buffer, coordinate by coordinate."""
    return View(buffer, buffer.shape, tuple(algebra.coord(axis) for axis in range(len(buffer.shape))))


def _under(get: Get, target: View) -> View:
    """What is read, over the coordinates of the target."""
    if get.at == target.at:
        return get.view
    return View(get.view.buffer, target.shape, tuple(substitute(at, {}, get.at) for at in get.view.at))


def asserted_views(stmt: Stmt) -> tuple[View, ...]:
    """The views of shared memory that an assertion speaks of, each once."""
    if not isinstance(stmt, Assert):
        return ()
    return tuple(dict.fromkeys(view for view in claim_views(stmt.claim) if view.buffer.space == "shared"))


def sequential_tv(view: View) -> TV:
    """The elements of a view, one after another."""
    shape = tuple(static(extent) for extent in view.shape)
    return TV(Layout(1, 0), Layout(prod(shape), 1), shape)


def _held(view: View) -> TV:
    layout = view.buffer.layout
    assert isinstance(layout, TV)
    return layout


def _operand(view: View) -> TV:
    """Who holds an operand: of shared memory, the unit that multiplies as one, element after element."""
    return sequential_tv(view) if view.buffer.space == "shared" else _held(view)


def _shape(by: TV) -> tuple[int, int]:
    return by.threads.size(), by.values.size()


@lru_cache(maxsize=64)
def _coordinates(by: TV) -> tuple[Separable, ...]:
    """Per axis, the coordinates of the elements that `by` moves."""
    return tuple(numeric(frozen_copy(axis)) for axis in by.coordinates())


@lru_cache(maxsize=256)
def _place(expression: Index, by: TV, thread: Symbol) -> Separable | None:
    """An expression over coordinates, for the elements that `by` moves, the same for whoever asks."""
    found = evaluate_separable(expression, _coordinates(by), thread, _shape(by))
    return None if found is None else Separable(found.base, frozen_copy(found.table))


class Accesses:
    """The accesses of every step, worked out once."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._found: dict[Step, tuple[Access, ...]] = {}

    def of(self, step: Step) -> tuple[Access, ...]:
        if step not in self._found:
            claimed = asserted_views(step.stmt) if "lds" in self.timeline.kernel.target.queues else ()
            looks = tuple(ViewAccess(view, "read", self._by_all(view)) for view in claimed)
            self._found[step] = tuple(self._access(step, side) for side in (*view_accesses(step.stmt), *looks))
        return self._found[step]

    def _by_all(self, view: View) -> TV:
        """Every thread looks at every element: a claim on shared memory is one that each wave makes when it comes."""
        shape = tuple(static(extent) for extent in view.shape)
        return TV(Layout(self.timeline.kernel.threads, 0), Layout(prod(shape), 1), shape)

    def place(self, expression: Index, by: TV) -> Separable | None:
        """An expression over a view's coordinates, for the elements that `by` moves."""
        return _place(expression, by, self.timeline.kernel.thread)

    def component(self, expression: Index, by: TV) -> FragmentIndex | None:
        """The same whether or not symbols and coordinates come apart."""
        return evaluate_piecewise(expression, _coordinates(by), self.timeline.kernel.thread, _shape(by))

    def held(self, step: Step, view: View, by: TV) -> Access:
        """The registers under a view, by the layout of its elements."""
        return self._access(step, ViewAccess(view, "read", by))

    def moved(self, access: Access, view: View) -> Access:
        """The same threads and elements under another view."""
        assert access.by is not None
        return self._access(access.step, ViewAccess(view, access.mode, access.by))

    def _access(self, step: Step, side: ViewAccess) -> Access:
        shape = _shape(side.by)
        if side.view.buffer.space == "register":
            mask = None if step.waves is None else self._moved(step, side, shape)
            return Access(step, side.view, side.mode, self._registers(side), shape, side.by, mask)
        found = [self.place(expression, side.by) for expression in side.view.at]
        places = tuple(place for place in found if place is not None)
        unusual = side.view.where is not algebra.TRUE or len(places) < len(found)
        if unusual and is_gathered(step.stmt, side.view):
            return self._gathered(step, side, shape)
        mask = self._moved(step, side, shape)
        return Access(step, side.view, side.mode, places if len(places) == len(found) else None, shape, side.by, mask)

    def _gathered(self, step: Step, side: ViewAccess, shape: tuple[int, int]) -> Access:
        """A load whose condition says what is padding: every thread moves all its elements."""
        found = [self.component(expression, side.by) for expression in side.view.at]
        known = tuple(place for place in found if place is not None)
        gathered = known if len(known) == len(found) else None
        plain = evolve(side, view=evolve(side.view, where=algebra.TRUE))
        mask = self._moved(step, plain, shape)
        return Access(step, side.view, side.mode, None, shape, side.by, mask, gathered)

    def _moved(self, step: Step, side: ViewAccess, shape: tuple[int, int]) -> npt.NDArray[np.bool_] | None:
        """The elements that the threads chosen by a view's condition move, of waves that execute the step; `timeline`
        lets no other condition pass.
        """
        if side.view.where is algebra.TRUE and step.waves is None:
            return None
        thread = np.arange(shape[0], dtype=np.int64)[:, None]
        chosen = np.asarray(valued(side.view.where, {self.timeline.kernel.thread: thread}))
        if step.waves is not None:
            chosen = chosen & (step.waves >> thread // self.timeline.kernel.target.unit & 1).astype(np.bool_)
        return np.array(np.broadcast_to(chosen, shape), np.bool_)

    def _registers(self, side: ViewAccess) -> tuple[Separable] | None:
        """The registers of elements that their own threads hold; None where another thread holds one."""
        held = side.view.buffer.layout
        assert isinstance(held, TV)
        if side.by.threads.size() != held.threads.size():
            return None
        thread = np.arange(held.threads.size(), dtype=np.int64)[:, None]
        if side.by == held and is_whole(side.view):
            return (numeric(thread * held.values.size() + np.arange(held.values.size())),)
        value = self._values(side, held)
        return None if value is None else (numeric(thread * held.values.size() + value),)

    def _values(self, side: ViewAccess, held: TV) -> IntArray | None:
        """Which value of its own thread each element is, by its coordinates in the tile."""
        number, below = np.zeros(_shape(side.by), np.int64), 1
        for expression, extent in zip(side.view.at, held.tile, strict=True):
            place = self.place(expression, side.by)
            if place is None or place.base is not algebra.const(0) or place.low < 0 or place.high >= extent:
                return None
            number, below = number + place.table * below, below * extent
        own = np.full((held.threads.size(), below), -1, np.int64)
        np.put_along_axis(
            own, held.elements(), np.broadcast_to(np.arange(held.values.size()), held.elements().shape), 1
        )
        found = np.take_along_axis(own, number, 1)
        return None if (found < 0).any() else found
