"""Whether a fold has its operands where it needs them.

The threads of a group (one thread, or those of a warp) fold the distinct elements that they hold together, row by
row: a row is what has the same coordinates but for the one along the axis. Every thread that holds a row's elements
gets the row's result.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from argus.core import algebra
from argus.core.check.holding import is_identity
from argus.core.index import Const, Index
from argus.core.ir import Fold, View
from argus.core.layout import TV, IntArray
from argus.core.walk import evaluate

FOLD_OPS = ("add", "mul", "max", "min", "last")
"""The operations of folds: `last` is the element with the greatest coordinate."""


def fold_error(stmt: Fold, unit: int) -> str:
    """What is wrong with a fold; empty if nothing. unit: threads of a warp."""
    source, target = stmt.source.buffer.layout, stmt.target.buffer.layout
    if stmt.op not in FOLD_OPS or (stmt.op == "last" and stmt.keep == "prefix"):
        return "it is no operation of folds"
    if not isinstance(source, TV) or not isinstance(target, TV) or not is_identity(stmt.target.at):
        return "both are tiles of registers, the second a whole one"
    if source.threads.size() != target.threads.size() or stmt.source.buffer.dtype != stmt.target.buffer.dtype:
        return "both have one number of threads and one type"
    shape = _extents(stmt.source)
    if shape is None or not 0 <= stmt.axis < len(shape):
        return f"it has no axis {stmt.axis}"
    group = 1 if stmt.within == "thread" else unit
    if stmt.keep == "prefix":
        return _prefix_fault(stmt.source, source, target)
    return _total_fault(source, stmt.source.at, shape, target, stmt.axis, group)


def _extents(view: View) -> tuple[int, ...] | None:
    found = tuple(extent.value for extent in view.shape if isinstance(extent, Const))
    return found if len(found) == len(view.shape) and view.where is algebra.TRUE else None


def _prefix_fault(source: View, held: TV, target: TV) -> str:
    if is_identity(source.at) and held == target:
        return ""
    return "prefixes are held where the elements are"


@lru_cache(maxsize=256)
def _total_fault(held: TV, at: tuple[Index, ...], shape: tuple[int, ...], target: TV, axis: int, group: int) -> str:
    others = tuple(extent for other, extent in enumerate(shape) if other != axis)
    dropped = target.tile == others
    if not dropped and (len(target.tile) != len(shape) or tuple(_without(target.tile, axis)) != others):
        return f"what is left of {shape} along axis {axis} is not {target.tile}"
    sets = _sets(held, at, shape, axis, group)
    if sets is None:
        return "its elements are chosen while the kernel runs"
    named: dict[tuple[int, int], frozenset[int]] = {}
    for thread, rows in enumerate(_results(target, axis, dropped=dropped)):
        own = sets[thread // group]
        wanted = {row for row, _ in rows}
        if not dropped and len(wanted) != len(rows):
            return f"thread {thread} holds two results of one row"
        if not wanted <= own.keys():
            return f"thread {thread} holds a result whose elements others hold"
        for row, number in rows:
            if named.setdefault((row, number), own[row]) != own[row]:
                return f"result {number} of a row is of different elements in different threads"
            if dropped and len(own[row]) != shape[axis]:
                return f"thread {thread} and those of its group hold {len(own[row])} of {shape[axis]} elements of a row"
    return ""


def _without(extents: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(extent for other, extent in enumerate(extents) if other != axis)


def _sets(
    held: TV, at: tuple[Index, ...], shape: tuple[int, ...], axis: int, group: int
) -> list[dict[int, frozenset[int]]] | None:
    """Per group of threads, the coordinates along the axis that it holds of each row."""
    grid = np.indices(shape, dtype=np.int64)
    try:
        number, below = np.zeros(shape, np.int64), 1
        for extent, expression in zip(held.tile, at, strict=True):
            number, below = number + np.asarray(evaluate(expression, {}, tuple(grid))) * below, below * extent
    except KeyError:
        return None
    along = np.full(prod(held.tile), -1, np.int64)
    row = np.zeros(prod(held.tile), np.int64)
    along[number.ravel()] = grid[axis].ravel()
    row[number.ravel()] = _row(tuple(grid), shape, axis).ravel()
    elements = held.elements()
    found: list[dict[int, frozenset[int]]] = []
    for first in range(0, len(elements), group):
        own = np.unique(elements[first : first + group])
        own = own[along[own] >= 0]
        rows: dict[int, set[int]] = {}
        for where, coordinate in zip(row[own].tolist(), along[own].tolist(), strict=True):
            rows.setdefault(where, set()).add(coordinate)
        found.append({where: frozenset(coordinates) for where, coordinates in rows.items()})
    return found


def _row(axes: tuple[IntArray, ...], shape: tuple[int, ...], axis: int) -> IntArray:
    number, below = np.zeros_like(axes[axis]), 1
    for other, extent in enumerate(shape):
        if other != axis:
            number, below = number + axes[other] * below, below * extent
    return number


def _results(target: TV, axis: int, *, dropped: bool) -> list[set[tuple[int, int]]]:
    """Per thread, the results that it holds: (row, number along the axis)."""
    axes = target.coordinates()
    size = (target.threads.size(), target.values.size())
    row, below = np.zeros(size, np.int64), 1
    for position, extent in enumerate(target.tile):
        if dropped or position != axis:
            row, below = row + axes[position] * below, below * extent
    number = np.zeros(size, np.int64) if dropped else axes[axis]
    return [set(zip(rows.tolist(), numbers.tolist(), strict=True)) for rows, numbers in zip(row, number, strict=True)]
