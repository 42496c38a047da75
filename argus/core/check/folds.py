"""Checks that the threads of a reduction or scan hold its operands and results.

The threads of a group (one thread, or one warp) together reduce the distinct elements that they hold, row by row: a
row is the set of elements that differ only in the coordinate along the axis. Every thread that holds elements of a row
gets the row's result.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from argus.core import algebra
from argus.core.check.register_operands import is_identity
from argus.core.index import Const, Index
from argus.core.ir import Fold, View
from argus.core.layout import TV, IntArray
from argus.core.walk import evaluate

FOLD_OPS = ("add", "mul", "max", "min", "max_nan", "min_nan", "last")
"""The reduction operators; `last` selects the element with the greatest coordinate."""


def fold_error(stmt: Fold, unit: int) -> str:
    """Why a fold is ill-formed; empty if it is well-formed. unit: threads of a warp."""
    source, target = stmt.source.buffer.layout, stmt.target.buffer.layout
    if stmt.op not in FOLD_OPS or (stmt.op == "last" and stmt.keep == "prefix"):
        return "it is not a reduction operator"
    if not isinstance(source, TV) or not isinstance(target, TV) or not is_identity(stmt.target.at):
        return "both must be register tiles, the target a whole one"
    if source.threads.size() != target.threads.size() or stmt.source.buffer.dtype != stmt.target.buffer.dtype:
        return "both must have the same number of threads and the same type"
    shape = _static_shape(stmt.source)
    if shape is None or not 0 <= stmt.axis < len(shape):
        return f"it has no axis {stmt.axis}"
    group = 1 if stmt.within == "thread" else unit
    if stmt.keep == "prefix":
        return _scan_error(stmt.source, source, target)
    return _reduction_error(source, stmt.source.at, shape, target, stmt.axis, group)


def _static_shape(view: View) -> tuple[int, ...] | None:
    found = tuple(extent.value for extent in view.shape if isinstance(extent, Const))
    return found if len(found) == len(view.shape) and view.where is algebra.TRUE else None


def _scan_error(source: View, held: TV, target: TV) -> str:
    if is_identity(source.at) and held == target:
        return ""
    return "each prefix must be held by the thread that holds its element"


@lru_cache(maxsize=256)
def _reduction_error(held: TV, at: tuple[Index, ...], shape: tuple[int, ...], target: TV, axis: int, group: int) -> str:
    others = tuple(extent for other, extent in enumerate(shape) if other != axis)
    dropped = target.tile == others
    if not dropped and (len(target.tile) != len(shape) or tuple(_without(target.tile, axis)) != others):
        return f"reducing {shape} along axis {axis} does not give {target.tile}"
    sets = _coordinates_by_row(held, at, shape, axis, group)
    if sets is None:
        return "its elements are indexed by run-time values"
    named: dict[tuple[int, int], frozenset[int]] = {}
    for thread, rows in enumerate(_target_rows(target, axis, dropped=dropped)):
        own = sets[thread // group]
        wanted = {row for row, _ in rows}
        if not dropped and len(wanted) != len(rows):
            return f"thread {thread} holds two results of one row"
        if not wanted <= own.keys():
            return f"thread {thread} holds a result whose elements other threads hold"
        for row, number in rows:
            if named.setdefault((row, number), own[row]) != own[row]:
                return f"result {number} of a row combines different elements in different threads"
            if dropped and len(own[row]) != shape[axis]:
                return f"the group of thread {thread} holds {len(own[row])} of {shape[axis]} elements of a row"
    return ""


def _without(extents: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(extent for other, extent in enumerate(extents) if other != axis)


def _coordinates_by_row(
    held: TV, at: tuple[Index, ...], shape: tuple[int, ...], axis: int, group: int
) -> list[dict[int, frozenset[int]]] | None:
    """For each group of threads, the coordinates along the axis that the group holds, by row; None if symbolic."""
    placed = element_rows(held, at, shape, axis)
    if placed is None:
        return None
    row, along = placed
    elements = held.elements()
    found: list[dict[int, frozenset[int]]] = []
    for first in range(0, len(elements), group):
        own = np.unique(elements[first : first + group])
        own = own[row[own] >= 0]
        rows: dict[int, set[int]] = {}
        for where, coordinate in zip(row[own].tolist(), along[own].tolist(), strict=True):
            rows.setdefault(where, set()).add(coordinate)
        found.append({where: frozenset(coordinates) for where, coordinates in rows.items()})
    return found


def element_rows(
    held: TV, at: tuple[Index, ...], shape: tuple[int, ...], axis: int
) -> tuple[IntArray, IntArray] | None:
    """For each element of the tile of `held`: its row, and its coordinate along the axis.

    at: the tile's coordinates of an element of a view of this shape. The row is -1 outside the view. None if an
    expression is symbolic.
    """
    grid = np.indices(shape, dtype=np.int64)
    try:
        number, below = np.zeros(shape, np.int64), 1
        for extent, expression in zip(held.tile, at, strict=True):
            number, below = number + np.asarray(evaluate(expression, {}, tuple(grid))) * below, below * extent
    except KeyError:
        return None
    along = np.zeros(prod(held.tile), np.int64)
    row = np.full(prod(held.tile), -1, np.int64)
    along[number.ravel()] = grid[axis].ravel()
    row[number.ravel()] = _row_indices(tuple(grid), shape, axis).ravel()
    return row, along


def _row_indices(axes: tuple[IntArray, ...], shape: tuple[int, ...], axis: int) -> IntArray:
    number, below = np.zeros_like(axes[axis]), 1
    for other, extent in enumerate(shape):
        if other != axis:
            number, below = number + axes[other] * below, below * extent
    return number


def result_rows(target: TV, axis: int, *, dropped: bool) -> tuple[IntArray, IntArray]:
    """For each register of the result, shape (threads, values): its row, and its coordinate along the axis.

    dropped: whether the result lacks the axis; the coordinate is then 0.
    """
    axes = target.coordinates()
    size = (target.threads.size(), target.values.size())
    row, below = np.zeros(size, np.int64), 1
    for position, extent in enumerate(target.tile):
        if dropped or position != axis:
            row, below = row + axes[position] * below, below * extent
    return row, np.zeros(size, np.int64) if dropped else axes[axis]


def _target_rows(target: TV, axis: int, *, dropped: bool) -> list[set[tuple[int, int]]]:
    """For each thread, the results that it holds: (row, index along the axis)."""
    row, number = result_rows(target, axis, dropped=dropped)
    return [set(zip(rows.tolist(), numbers.tolist(), strict=True)) for rows, numbers in zip(row, number, strict=True)]
