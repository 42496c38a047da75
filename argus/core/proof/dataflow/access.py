"""Computes the footprint of each statement's accesses and where two accesses overlap.

A coordinate that is equal for all threads is a slot (`k % 2` of a double buffer); slots are compared as expressions.
Coordinates that vary over threads and values are cells; cells are compared by tables of numbers.
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
from argus.core.ir.view_ends import ViewEnd, view_ends
from argus.core.layout import TV, Layout
from argus.core.proof.dataflow.ended_copies import ends_loads, ends_stores
from argus.core.proof.dataflow.footprints import AxisRange, AxisRanges, CellTables
from argus.core.proof.dataflow.piecewise_index import evaluate_piecewise
from argus.core.proof.dataflow.separable_index import FragmentIndex, Separable, evaluate_separable, frozen_copy, numeric
from argus.core.proof.dataflow.timeline import Shift, Step, Timeline, is_gathered, is_shuffle, is_whole
from argus.core.walk import IntArray, substitute
from argus.core.walk import evaluate as valued

Mode = Literal["read", "write"]


@frozen(eq=False)
class Access:
    """The elements that one step reads or writes through one view.

    places: per buffer axis, the coordinate of element (thread, value); None if one is not separable. A register tile
    has one axis, thread * values + value. shape: (threads, values). by: the thread-value layout of the access.
    mask: the elements that are accessed; None if all are.
    gathered: the coordinates of a gathered load from a tensor, separable or not.
    """

    step: Step
    view: View
    mode: Mode
    places: tuple[Separable, ...] | None
    shape: tuple[int, int]
    by: TV | None = None
    mask: npt.NDArray[np.bool_] | None = None
    gathered: tuple[FragmentIndex, ...] | None = None
    _cell_numbers: dict[tuple[AxisRanges, int], IntArray] = field(
        factory=dict[tuple[AxisRanges, int], IntArray], init=False, repr=False
    )
    _cell_tables: dict[tuple[Access, AxisRanges], CellTables] = field(
        factory=dict["tuple[Access, AxisRanges]", CellTables], init=False, repr=False
    )

    @property
    def ends(self) -> tuple[ViewEnd, ...]:
        """Where a store ends within its tile: an element is stored if it satisfies all of them."""
        stmt = self.step.stmt
        ended = self.mode == "write" and isinstance(stmt, Copy) and ends_stores(stmt)
        return (view_ends(self.view) or ()) if ended else ()

    @property
    def active(self) -> npt.NDArray[np.bool_]:
        """Mask of the elements that are accessed, shape (threads, values)."""
        return np.ones(self.shape, np.bool_) if self.mask is None else self.mask

    def cells(self, spans: AxisRanges, beyond: int) -> IntArray:
        """The cell number of each element; an element that is not accessed gets a unique number from `beyond` on."""
        key = spans, (0 if self.mask is None else beyond)
        if key not in self._cell_numbers:
            assert self.places is not None
            cells = np.zeros(self.shape, np.int64)
            for axis, low, size in spans:
                cells = cells * size + (self.places[axis].table - low)
            self._cell_numbers[key] = _separate_inactive(cells, self.mask, beyond)
        return self._cell_numbers[key]

    def cells_with(self, other: Access, own: AxisRanges, others: AxisRanges) -> CellTables:
        """The cell numbers of this access and of `other`, over the same axes."""
        key = other, others
        if key not in self._cell_tables or self._cell_tables[key].spans != own:
            count = prod(size for _, _, size in own)
            first, second = self.cells(own, count), other.cells(others, count + prod(self.shape))
            self._cell_tables[key] = CellTables(own, first, second)
        return self._cell_tables[key]


@frozen(eq=False)
class Overlap:
    """The cells of two accesses of one buffer. slots: the condition that their symbolic coordinates are equal."""

    slots: Cond
    cells: CellTables


def overlap(first: Access, second: Access, shift: Shift) -> Overlap | None:
    """Where `first` overlaps `second` after the substitution `shift`, which selects its iteration; None if unknown.

    An axis on which an access varies is compared by tables, which requires equal symbolic parts.
    """
    if first.places is None or second.places is None:
        return None
    slots: list[Cond] = []
    own: list[AxisRange] = []
    others: list[AxisRange] = []
    for axis, (mine, theirs) in enumerate(zip(first.places, second.places, strict=True)):
        shifted = theirs.shifted(shift)
        if mine.uniform and shifted.uniform:
            slots.append(algebra.eq(mine.least, shifted.least))
            continue
        if mine.base is not shifted.base:
            return None
        low = min(mine.low, shifted.low)
        size = max(mine.high, shifted.high) - low + 1
        own.append((axis, low, size))
        others.append((axis, low - (shifted.low - theirs.low), size))
    return Overlap(algebra.all_of(slots), first.cells_with(second, tuple(own), tuple(others)))


def _has_ends(step: Step, side: ViewAccess) -> bool:
    if not isinstance(step.stmt, Copy):
        return False
    return ends_stores(step.stmt) if side.mode == "write" else ends_loads(step.stmt)


def _separate_inactive(cells: IntArray, mask: npt.NDArray[np.bool_] | None, beyond: int) -> IntArray:
    """Renumber the elements that are not accessed, so that each has a cell that no other access has."""
    return cells if mask is None else np.where(mask, cells, beyond + np.arange(cells.size).reshape(cells.shape))


@frozen
class ViewAccess:
    """A view that a statement reads or writes, with the thread-value layout of the access."""

    view: View
    mode: Mode
    by: TV


def view_accesses(stmt: Stmt) -> tuple[ViewAccess, ...]:
    """The views that a statement reads, then those that it writes."""
    match stmt:
        case Copy(source=source, target=target) if is_shuffle(stmt):
            return ViewAccess(whole_view(source.buffer), "read", _register_layout(source)), ViewAccess(
                target, "write", _register_layout(target)
            )
        case Copy(source=source, target=target, by=by):
            return ViewAccess(source, "read", by), ViewAccess(target, "write", by)
        case Map(target=target, elem=elem):
            layout = _register_layout(target)
            reads = [ViewAccess(_compose_view(get, target), "read", layout) for get in gets(elem)]
            return *reads, ViewAccess(target, "write", layout)
        case Fold(target=target, source=source):
            return ViewAccess(source, "read", _register_layout(source)), ViewAccess(
                target, "write", _register_layout(target)
            )
        case Mma(target=target, a=a, b=b):
            reads = [ViewAccess(view, "read", _operand_layout(view)) for view in (a, b, target)]
            return *reads, ViewAccess(target, "write", _register_layout(target))
        case _:
            return ()


def whole_view(buffer: Buffer) -> View:
    """The identity view of a buffer."""
    return View(buffer, buffer.shape, tuple(algebra.coord(axis) for axis in range(len(buffer.shape))))


def _compose_view(get: Get, target: View) -> View:
    """The view that an elementwise read accesses, as a function of the target's coordinates."""
    if get.at == target.at:
        return get.view
    return View(get.view.buffer, target.shape, tuple(substitute(at, {}, get.at) for at in get.view.at))


def asserted_views(stmt: Stmt) -> tuple[View, ...]:
    """The distinct shared-memory views that an assertion mentions; empty for other statements."""
    if not isinstance(stmt, Assert):
        return ()
    return tuple(dict.fromkeys(view for view in claim_views(stmt.claim) if view.buffer.space == "shared"))


def sequential_tv(view: View) -> TV:
    """A layout with one thread that accesses the elements of a view in column-major order."""
    shape = tuple(static(extent) for extent in view.shape)
    return TV(Layout(1, 0), Layout(prod(shape), 1), shape)


def _register_layout(view: View) -> TV:
    layout = view.buffer.layout
    assert isinstance(layout, TV)
    return layout


def _operand_layout(view: View) -> TV:
    """The layout of a matrix operand; a shared-memory operand is read as a whole by one agent."""
    return sequential_tv(view) if view.buffer.space == "shared" else _register_layout(view)


def _shape(by: TV) -> tuple[int, int]:
    return by.threads.size(), by.values.size()


@lru_cache(maxsize=64)
def _coordinates(by: TV) -> tuple[Separable, ...]:
    """Per axis, the coordinates of the elements of `by`."""
    return tuple(numeric(frozen_copy(axis)) for axis in by.coordinates())


@lru_cache(maxsize=256)
def _separable_index(expression: Index, by: TV, thread: Symbol) -> Separable | None:
    """An expression over coordinates at the elements of `by`. The result is cached, so its table is read-only."""
    found = evaluate_separable(expression, _coordinates(by), thread, _shape(by))
    return None if found is None else Separable(found.base, frozen_copy(found.table))


class Accesses:
    """The accesses of every step of a timeline, computed once per step."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._found: dict[Step, tuple[Access, ...]] = {}

    def of(self, step: Step) -> tuple[Access, ...]:
        """The reads of a step, then its writes; on targets with an LDS counter also the reads of assertions."""
        if step not in self._found:
            views = asserted_views(step.stmt) if "lds" in self.timeline.kernel.target.queues else ()
            asserted = tuple(ViewAccess(view, "read", self._every_thread(view)) for view in views)
            self._found[step] = tuple(self._access(step, side) for side in (*view_accesses(step.stmt), *asserted))
        return self._found[step]

    def _every_thread(self, view: View) -> TV:
        """A layout in which every thread reads every element: each wave checks an assertion on shared memory itself."""
        shape = tuple(static(extent) for extent in view.shape)
        return TV(Layout(self.timeline.kernel.threads, 0), Layout(prod(shape), 1), shape)

    def separable_index(self, expression: Index, by: TV) -> Separable | None:
        """An expression over a view's coordinates at the elements of `by`; None if it is not separable."""
        return _separable_index(expression, by, self.timeline.kernel.thread)

    def fragment_index(self, expression: Index, by: TV) -> FragmentIndex | None:
        """An expression over a view's coordinates at the elements of `by`, piecewise if it is not separable."""
        return evaluate_piecewise(expression, _coordinates(by), self.timeline.kernel.thread, _shape(by))

    def register_read(self, step: Step, view: View, by: TV) -> Access:
        """A read of registers through a view at `step`. by: the layout of the view's elements."""
        return self._access(step, ViewAccess(view, "read", by))

    def with_view(self, access: Access, view: View) -> Access:
        """The access of the same threads and elements through another view."""
        assert access.by is not None
        return self._access(access.step, ViewAccess(view, access.mode, access.by))

    def _access(self, step: Step, side: ViewAccess) -> Access:
        shape = _shape(side.by)
        if side.view.buffer.space == "register":
            mask = None if step.waves is None else self._active_elements(step, side, shape)
            return Access(step, side.view, side.mode, self._register_numbers(side), shape, side.by, mask)
        found = [self.separable_index(expression, side.by) for expression in side.view.at]
        places = tuple(place for place in found if place is not None)
        unusual = side.view.where is not algebra.TRUE or len(places) < len(found)
        if unusual and is_gathered(step.stmt, side.view):
            return self._gathered(step, side, shape)
        mask = self._active_elements(step, side, shape)
        return Access(step, side.view, side.mode, places if len(places) == len(found) else None, shape, side.by, mask)

    def _gathered(self, step: Step, side: ViewAccess, shape: tuple[int, int]) -> Access:
        """A gathered load: elements whose condition fails are padding, so every thread accesses all its elements."""
        found = [self.fragment_index(expression, side.by) for expression in side.view.at]
        known = tuple(place for place in found if place is not None)
        gathered = known if len(known) == len(found) else None
        plain = evolve(side, view=evolve(side.view, where=algebra.TRUE))
        mask = self._active_elements(step, plain, shape)
        return Access(step, side.view, side.mode, None, shape, side.by, mask, gathered)

    def _active_elements(self, step: Step, side: ViewAccess, shape: tuple[int, int]) -> npt.NDArray[np.bool_] | None:
        """Mask of the elements whose thread satisfies the view's condition and whose wave executes the step.

        Of a copy that ends within its tile, the whole tile: `ends` of the access says which elements are stored.
        `timeline` refuses views with other conditions. None if all elements are accessed.
        """
        whole = side.view.where is algebra.TRUE or _has_ends(step, side)
        if whole and step.waves is None:
            return None
        thread = np.arange(shape[0], dtype=np.int64)[:, None]
        where = algebra.TRUE if whole else side.view.where
        chosen = np.asarray(valued(where, {self.timeline.kernel.thread: thread}))
        if step.waves is not None:
            chosen = chosen & (step.waves >> thread // self.timeline.kernel.target.unit & 1).astype(np.bool_)
        return np.array(np.broadcast_to(chosen, shape), np.bool_)

    def _register_numbers(self, side: ViewAccess) -> tuple[Separable] | None:
        """The register numbers of the elements; None if an element is in a register of another thread."""
        layout = side.view.buffer.layout
        assert isinstance(layout, TV)
        if side.by.threads.size() != layout.threads.size():
            return None
        thread = np.arange(layout.threads.size(), dtype=np.int64)[:, None]
        if side.by == layout and is_whole(side.view):
            return (numeric(thread * layout.values.size() + np.arange(layout.values.size())),)
        value = self._value_indices(side, layout)
        return None if value is None else (numeric(thread * layout.values.size() + value),)

    def _value_indices(self, side: ViewAccess, layout: TV) -> IntArray | None:
        """The value index of each element within its thread; None if another thread holds it."""
        number, below = np.zeros(_shape(side.by), np.int64), 1
        for expression, extent in zip(side.view.at, layout.tile, strict=True):
            place = self.separable_index(expression, side.by)
            if place is None or place.base is not algebra.const(0) or place.low < 0 or place.high >= extent:
                return None
            number, below = number + place.table * below, below * extent
        own = np.full((layout.threads.size(), below), -1, np.int64)
        np.put_along_axis(
            own, layout.elements(), np.broadcast_to(np.arange(layout.values.size()), layout.elements().shape), 1
        )
        found = np.take_along_axis(own, number, 1)
        return None if (found < 0).any() else found
