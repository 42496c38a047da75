"""What a statement touches of a buffer, and where two accesses meet.

A coordinate that is the same for all threads is a slot (`k % 2` of a double buffer): slots are compared as
expressions. Coordinates that vary over threads and values are cells: compared by tables of numbers.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from attrs import frozen

from argus.core import algebra
from argus.core.elements import gets
from argus.core.index import Cond, Index
from argus.core.ir import Copy, Map, Mma, Stmt, View
from argus.core.layout import TV
from argus.core.proof.separate import Sep, evaluate, numbers
from argus.core.proof.timeline import Shift, Step, Timeline, is_whole
from argus.core.walk import IntArray

Mode = Literal["read", "write"]


@frozen(eq=False)
class Access:
    """One side of one step.

    places: per buffer axis, the coordinate of element (thread, value); None where it does not come apart.
    """

    step: Step
    view: View
    mode: Mode
    places: tuple[Sep, ...] | None
    shape: tuple[int, int]


@frozen(eq=False)
class Meeting:
    """Where two accesses of one buffer touch the same cells.

    slots: the condition that their symbolic coordinates agree; first, second: cell numbers, comparable.
    """

    slots: Cond
    first: IntArray
    second: IntArray


def meeting(first: Access, second: Access, shift: Shift) -> Meeting | None:
    """How two accesses meet when `second` is in the iteration `shift` speaks of; None if it cannot be told.

    An axis on which either varies over cells is compared by tables, which needs one symbolic part.
    """
    if first.places is None or second.places is None:
        return None
    slots: list[Cond] = []
    a = np.zeros(first.shape, np.int64)
    b = np.zeros(second.shape, np.int64)
    for mine, theirs in zip(first.places, second.places, strict=True):
        moved = theirs.shifted(shift)
        if mine.uniform and moved.uniform:
            slots.append(algebra.eq(mine.least, moved.least))
            continue
        if mine.base is not moved.base:
            return None
        low = min(mine.low, moved.low)
        size = max(mine.high, moved.high) - low + 1
        a = a * size + (mine.table - low)
        b = b * size + (moved.table - low)
    return Meeting(algebra.all_of(slots), a, b)


@frozen
class Side:
    view: View
    mode: Mode
    by: TV


def sides(stmt: Stmt) -> tuple[Side, ...]:
    """The views a statement reads, then those it writes, with who holds what."""
    match stmt:
        case Copy(source=source, target=target, by=by):
            return Side(source, "read", by), Side(target, "write", by)
        case Map(target=target, elem=elem):
            layout = _held(target)
            reads = [Side(get.view, "read", layout) for get in gets(elem)]
            return *reads, Side(target, "write", layout)
        case Mma(target=target, a=a, b=b):
            reads = [Side(view, "read", _held(view)) for view in (a, b, target)]
            return *reads, Side(target, "write", _held(target))
        case _:
            return ()


def _held(view: View) -> TV:
    layout = view.buffer.layout
    assert isinstance(layout, TV)
    return layout


class Accesses:
    """The accesses of every step, worked out once."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._found: dict[Step, tuple[Access, ...]] = {}
        self._coordinates: dict[TV, tuple[IntArray, ...]] = {}

    def of(self, step: Step) -> tuple[Access, ...]:
        if step not in self._found:
            self._found[step] = tuple(self._access(step, side) for side in sides(step.stmt))
        return self._found[step]

    def coordinates(self, by: TV) -> tuple[IntArray, ...]:
        if by not in self._coordinates:
            self._coordinates[by] = by.coordinates()
        return self._coordinates[by]

    def place(self, expression: Index, by: TV) -> Sep | None:
        """An expression over a view's coordinates, for the elements that `by` moves."""
        coords = [numbers(axis) for axis in self.coordinates(by)]
        return evaluate(expression, coords, self._timeline.kernel.thread, (by.threads.size(), by.values.size()))

    def _access(self, step: Step, side: Side) -> Access:
        shape = (side.by.threads.size(), side.by.values.size())
        if side.view.buffer.space == "register":
            if side.by != side.view.buffer.layout or not is_whole(side.view):
                return Access(step, side.view, side.mode, None, shape)
            thread = np.arange(shape[0], dtype=np.int64)[:, None]
            own = numbers(np.broadcast_to(thread * shape[1] + np.arange(shape[1]), shape))
            return Access(step, side.view, side.mode, (own,), shape)
        found = [self.place(expression, side.by) for expression in side.view.at]
        places = tuple(place for place in found if place is not None)
        return Access(step, side.view, side.mode, places if len(places) == len(found) else None, shape)
