"""Folds, prefixes and shifts of register values along one axis, within a thread or a warp."""

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
"""Within one thread: no lane sees another's elements."""


def level(within: Within) -> Level:
    """The level that `within=` names: `thread`, or `warp`."""
    if within == "thread":
        return "thread"
    if within in ("warp", warp):
        return "warp"
    fault("E106", f"`within` is `thread` or `warp`, found {describe_value(within)}", help="write `within=thread`")


def total(value: RegisterTile, axis: int, op: str, within: Within | None) -> RegisterTile:
    """Each row folded along an axis, by each thread or each warp; all of the row where no level is given.

    Raises E205 where no level is given and a row lies in several warps.
    """
    tracer = current(op)
    position, unit = _axis(value, axis), tracer.target.unit
    chosen = None if within is None else level(within)
    layout = _folded(value.layout, position, 1 if chosen == "thread" else unit)
    if chosen is None and len(layout.tile) == len(value.layout.tile):
        fault(
            "E205",
            f"axis {position} of `{value.view.buffer.name}` lies in several warps: {value.layout}",
            here="folded here",
            help="fold `within=warp`, then through shared memory",
        )
    alone = layout == _folded(value.layout, position, 1)
    return _fold(value, layout, position, op, "thread" if alone else "warp")


def prefix(value: RegisterTile, axis: int, op: str, within: Within) -> RegisterTile:
    """Each element folded with those before it along an axis, as far as its thread or warp holds them."""
    current("scan")
    position = _axis(value, axis)
    if value.layout != value.view.buffer.layout:
        fault("E501", "a prefix of a part of a tile is not built yet", help="take the prefix of all of it")
    tracer = current("scan")
    found = fresh(value.dtype, value.layout, "scan")
    tracer.emit(Fold(found.view, value.view, position, op, "prefix", level(within), span=tracer.span()))
    return found


def last(value: RegisterTile, axis: int, within: Within | None) -> RegisterTile:
    """The last element along an axis of those that a thread holds, or where it holds one, of those of its warp."""
    tracer = current("last")
    position = _axis(value, axis)
    alone = _folded(value.layout, position, 1)
    by_thread = alone.tile != value.layout.tile if within is None else level(within) == "thread"
    layout = alone if by_thread else _folded(value.layout, position, tracer.target.unit)
    return _fold(value, layout, position, "last", "thread" if by_thread else "warp")


def _fold(value: RegisterTile, layout: TV, axis: int, op: str, within: Level) -> RegisterTile:
    found = fresh(value.dtype, layout, op)
    tracer = current(op)
    tracer.emit(Fold(found.view, value.view, axis, op, "total", within, span=tracer.span()))
    return found


def shift(value: RegisterTile, axis: int, distance: int, fill: float) -> RegisterTile:
    """Each lane's element from `distance` lanes before; `fill` for the first lanes of a warp.

    Raises E205 unless consecutive lanes hold consecutive elements, one each.
    """
    tracer = current("shift")
    position, count = _axis(value, axis), number(distance, "the distance of a shift")
    lanes = _lanes(value.layout, position, tracer.target.unit)
    if lanes is None or value.layout != value.view.buffer.layout:
        fault(
            "E205",
            f"lanes do not hold one element each, in order, along axis {position} of `{value.view.buffer.name}`",
            help="shift what has one value a lane: a fold within the thread, or its last element",
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


def _lanes(layout: TV, axis: int, unit: int) -> int | None:
    """Lanes of a warp along an axis, if lane l of w warps holds element l + w * lanes and no other."""
    if layout.values.size() != 1:
        return None
    coordinate = layout.coordinates()[axis][:, 0]
    own = np.arange(len(coordinate))
    return unit if len(own) % unit == 0 and bool((coordinate == own).all()) else None


def _folded(layout: TV, axis: int, within: int) -> TV:
    try:
        return layout.partial(axis, within)
    except ValueError as problem:
        fault("E109", str(problem), help="fold along an axis that threads divide evenly")


def _axis(value: RegisterTile, axis: int) -> int:
    found, rank = number(axis, "an axis"), len(value.layout.tile)
    if not 0 <= found < rank:
        name = value.view.buffer.name
        fault("E106", f"`{name}` has no axis {found}", help=f"its axes are numbered from 0 to {rank - 1}")
    return found


def neutral(op: str) -> float:
    """The number that a fold by `op` does not see."""
    return {"add": 0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}[op]


def operation(op: object, known: dict[object, str]) -> str:
    found = known.get(op) if callable(op) else None
    if found is None:
        names = ", ".join(f"`{cast('Callable[..., object]', each).__name__}`" for each in known)
        fault("E106", f"no fold by {describe_value(op)}", help=f"fold by one of {names}")
    return found
