"""Reductions, scans and lane shifts of register tiles along one axis, within a thread or a warp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

import numpy as np

from argus.core import algebra
from argus.core.atoms.lanes import SHUFFLES
from argus.core.dsl.faults import describe_value, fault
from argus.core.dsl.handles import number
from argus.core.dsl.roles import Warps, warp
from argus.core.dsl.tiles.values import RegisterTile, fresh
from argus.core.dsl.tracer import current
from argus.core.ir import Copy, Fold, View
from argus.core.layout import TV
from argus.core.walk import substitute

Level = Literal["thread", "warp"]
Within = Level | Callable[[int], Warps]

thread: Level = "thread"
"""`within=thread`: each thread reduces only its own elements."""


def level(within: Within) -> Level:
    """The level that `within=` names. Raises E106 for anything but `thread` and `warp`."""
    if within == "thread":
        return "thread"
    if within in ("warp", warp):
        return "warp"
    fault("E106", f"`within` is `thread` or `warp`, found {describe_value(within)}", help="write `within=thread`")


def reduce(value: RegisterTile, axis: int, op: str, within: Within | None) -> RegisterTile:
    """A reduction along an axis by each thread or each warp; within None: of whole rows.

    Raises E205 if `within` is None and several warps hold a row.
    """
    tracer = current(op)
    position, unit = _check_axis(value, axis), tracer.target.unit
    chosen = None if within is None else level(within)
    layout = _reduced_layout(value.layout, position, 1 if chosen == "thread" else unit)
    if chosen is None and len(layout.tile) == len(value.layout.tile):
        fault(
            "E205",
            f"axis {position} of `{value.view.buffer.name}` is held by several warps: {value.layout}",
            here="reduced here",
            help="reduce `within=warp`, then across warps through shared memory",
        )
    in_thread = layout == _reduced_layout(value.layout, position, 1)
    return _emit_fold(value, layout, position, op, "thread" if in_thread else "warp")


def scan(value: RegisterTile, axis: int, op: str, within: Within) -> RegisterTile:
    """An inclusive scan along an axis, over the elements that each thread or warp holds."""
    current("scan")
    position = _check_axis(value, axis)
    if value.layout != value.view.buffer.layout:
        fault("E501", "a scan of a subtile is not built yet", help="scan the whole tile")
    tracer = current("scan")
    found = fresh(value.dtype, value.layout, "scan")
    tracer.emit(Fold(found.view, value.view, position, op, "prefix", level(within), span=tracer.span()))
    return found


def last(value: RegisterTile, axis: int, within: Within | None) -> RegisterTile:
    """The last element along an axis that a thread holds, or its warp if the thread holds only one."""
    tracer = current("last")
    position = _check_axis(value, axis)
    thread_layout = _reduced_layout(value.layout, position, 1)
    by_thread = thread_layout.tile != value.layout.tile if within is None else level(within) == "thread"
    layout = thread_layout if by_thread else _reduced_layout(value.layout, position, tracer.target.unit)
    return _emit_fold(value, layout, position, "last", "thread" if by_thread else "warp")


def _emit_fold(value: RegisterTile, layout: TV, axis: int, op: str, within: Level) -> RegisterTile:
    found = fresh(value.dtype, layout, op)
    tracer = current(op)
    tracer.emit(Fold(found.view, value.view, axis, op, "total", within, span=tracer.span()))
    return found


def shift(value: RegisterTile, axis: int, distance: int, fill: float) -> RegisterTile:
    """A warp shuffle: each lane gets the element of the lane `distance` lanes earlier; the first lanes get `fill`.

    Raises E205 unless consecutive lanes hold consecutive elements, one each.
    """
    tracer = current("shift")
    position, count = _check_axis(value, axis), number(distance, "the distance of a shift")
    lanes = _lanes_along(value.layout, position, tracer.target.unit)
    if lanes is None or value.layout != value.view.buffer.layout:
        fault(
            "E205",
            f"lanes do not hold one element each, in order, along axis {position} of `{value.view.buffer.name}`",
            help="shift a tile with one element per lane: a reduction within the thread, or its last element",
        )
    atom = SHUFFLES[tracer.target.name]
    if atom.vector_bits != value.dtype.bits:
        fault("E108", f"`{atom}` moves {atom.vector_bits} bits between lanes, not {value.dtype}", help="convert to f32")
    moved = algebra.sub(algebra.mod(algebra.coord(position), lanes), count)
    inside = algebra.all_of((algebra.le(0, moved), algebra.lt(moved, lanes)))
    own = [algebra.coord(each) for each in range(len(value.layout.tile))]
    before = [algebra.sub(each, count) if at == position else each for at, each in enumerate(own)]
    at = tuple(substitute(expression, {}, before) for expression in value.view.at)
    source = View(value.view.buffer, value.view.shape, at, inside)
    found = fresh(value.dtype, value.layout, "shift")
    tracer.emit(Copy(atom, source, found.view, value.layout, float(fill), span=tracer.span()))
    return found


def _lanes_along(layout: TV, axis: int, unit: int) -> int | None:
    """The lanes of a warp, if lane l of warp w holds only element l + w * lanes along the axis; else None."""
    if layout.values.size() != 1:
        return None
    coordinate = layout.coordinates()[axis][:, 0]
    own = np.arange(len(coordinate))
    return unit if len(own) % unit == 0 and bool((coordinate == own).all()) else None


def _reduced_layout(layout: TV, axis: int, within: int) -> TV:
    try:
        return layout.partial(axis, within)
    except ValueError as problem:
        fault("E109", str(problem), help="reduce along an axis that the threads divide evenly")


def _check_axis(value: RegisterTile, axis: int) -> int:
    found, rank = number(axis, "an axis"), len(value.layout.tile)
    if not 0 <= found < rank:
        name = value.view.buffer.name
        fault("E106", f"`{name}` has no axis {found}", help=f"its axes are numbered from 0 to {rank - 1}")
    return found


def neutral(op: str) -> float:
    """The neutral element of a reduction by `op`."""
    return {"add": 0.0, "mul": 1.0, "max": -np.inf, "min": np.inf, "max_nan": -np.inf, "min_nan": np.inf}[op]


def operation(op: object, known: dict[object, str]) -> str:
    """The name of a reduction operator. Raises E106 if it is not in `known`."""
    found = known.get(op) if callable(op) else None
    if found is None:
        names = ", ".join(f"`{cast('Callable[..., object]', each).__name__}`" for each in known)
        fault("E106", f"no fold by {describe_value(op)}", help=f"fold by one of {names}")
    return found
