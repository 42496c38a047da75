"""Expressions over coordinates that equal a table which no affine function equals: layouts, turned ones, and swizzles.

A table over several coordinates is the sum, or the XOR, of one function of each. A function of one coordinate is a
layout: a digit of the coordinate times its stride, plus a layout of the digits above. A digit, or the coordinate, may
be turned: `(c + b) % n`, as where a view rotates rows. What is found is compared with the table at every element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np
from attrs import frozen

from argus.core import algebra
from argus.core.index import Index
from argus.core.proof.values.held.tables import BoolArray
from argus.core.walk import IntArray

_MOST_TURNS = 64
"""Places tried for the start of a turned layout: those at which the table's step changes."""


@frozen(eq=False)
class Grid:
    """A table that is a function of coordinates, over all tuples of their numbers: one axis for each coordinate.

    names: the number of each coordinate's place on its axis, as an expression.
    """

    table: IntArray
    names: tuple[Index, ...]


def is_function(table: IntArray, others: Sequence[IntArray]) -> bool:
    """Whether elements of equal coordinates have equal numbers. others: the coordinates, of the table's shape."""
    coordinates = np.stack([each.ravel() for each in others])
    both = np.concatenate([coordinates, table.reshape(1, -1)])
    return np.unique(both, axis=1).shape[1] == np.unique(coordinates, axis=1).shape[1]


def layout_in(
    table: IntArray, others: Sequence[IntArray], names: Sequence[Index], need: BoolArray | None = None
) -> Index | None:
    """A table as a sum or an XOR of layouts of coordinates; None if it is none, or no function of them.

    others: the coordinates, of the table's shape. names: the coordinates as expressions. need: the elements at which
    they have to be equal (all if None).
    """
    if need is not None:
        table, others = table[need], [each[need] for each in others]
    grid = _grid(table, others, names)
    if grid is None:
        return None
    return _summed(grid) if _is_sum(grid.table) else _swizzled(grid) if _is_xor(grid.table) else None


def _grid(table: IntArray, others: Sequence[IntArray], names: Sequence[Index]) -> Grid | None:
    """The table over its coordinates; None if it is no function of them, or they leave gaps."""
    columns = np.unique(np.stack([*(each.ravel() for each in others), table.ravel()]), axis=1)
    extents: list[int] = []
    places: list[Index] = []
    for numbers, name in zip(columns[:-1], names, strict=True):
        used = np.unique(numbers)
        low, step = int(used[0]), int(used[1] - used[0]) if used.size > 1 else 1
        if not bool((used == low + step * np.arange(used.size)).all()):
            return None
        extents.append(used.size)
        places.append(algebra.floordiv(algebra.sub(name, low), step))
    if not extents or columns.shape[1] != int(np.prod(extents)) or not is_function(columns[-1], [*columns[:-1]]):
        return None
    # Columns are sorted by the first coordinate, then by the next.
    return Grid(columns[-1].reshape(extents), tuple(places))


def _lines(table: IntArray) -> list[IntArray]:
    """The table along each axis, where all other coordinates are 0."""
    first = [0] * table.ndim
    return [table[(*first[:axis], slice(None), *first[axis + 1 :])] for axis in range(table.ndim)]


def _is_sum(table: IntArray) -> bool:
    lines = np.ix_(*_lines(table - table.flat[0]))
    return bool((reduce(np.add, lines) + table.flat[0] == table).all())


def _is_xor(table: IntArray) -> bool:
    lines = np.ix_(*_lines(table ^ table.flat[0]))
    return bool((table >= 0).all()) and bool((reduce(np.bitwise_xor, lines) ^ table.flat[0] == table).all())


def _summed(grid: Grid) -> Index | None:
    start = int(grid.table.flat[0])
    parts = [_layout(line - start, name) for line, name in zip(_lines(grid.table), grid.names, strict=True)]
    found = [each for each in parts if each is not None]
    return algebra.add(*found, start) if len(found) == len(parts) else None


def _swizzled(grid: Grid) -> Index | None:
    start = int(grid.table.flat[0])
    parts = [_layout(line ^ start, name) for line, name in zip(_lines(grid.table), grid.names, strict=True)]
    found = [each for each in parts if each is not None]
    return reduce(algebra.bit_xor, found, algebra.const(start)) if len(found) == len(parts) else None


def _layout(values: IntArray, at: Index, turns: bool = True) -> Index | None:
    """The function of a place `at`, from 0, that has these values: its digits times strides, some digits turned."""
    run = _run(values)
    if run == values.size:
        return _affine(values, at)
    if values.size % run == 0:  # as in a layout whose digits are all complete
        found = _split(values, run, at, turns)
        if found is not None:
            return found
    found = _turned(values, at) if turns else None
    return found if found is not None else _split(values, run, at, turns)


def _affine(values: IntArray, at: Index) -> Index:
    step = int(values[1] - values[0]) if values.size > 1 else 0
    return algebra.add(algebra.mul(at, step), int(values[0]))


def _run(values: IntArray) -> int:
    """How many values from the first on are in equal steps."""
    changes = np.flatnonzero(np.diff(values, 2))
    return int(changes[0]) + 2 if changes.size else values.size


def _repeats(values: IntArray, size: int) -> bool:
    """Whether each group of so many values is the first one plus a number."""
    places = np.arange(values.size)
    again = values[places % size] + values[places // size * size] - values[0]
    return bool((again == values).all())


def _split(values: IntArray, size: int, at: Index, turns: bool) -> Index | None:
    """A digit below `size`, whose values are in equal steps, and a layout of the digits above."""
    if not _repeats(values, size):
        return None
    above = _layout(values[::size] - values[0], algebra.floordiv(at, size), turns)
    return None if above is None else algebra.add(_affine(values[:size], algebra.mod(at, size)), above)


def _turned(values: IntArray, at: Index) -> Index | None:
    """A turned layout of the digits below some size, and a layout of those above."""
    for size in (each for each in range(3, values.size + 1) if values.size % each == 0 and _repeats(values, each)):
        for start in _starts(values[:size]):
            turned = algebra.mod(algebra.add(at, size - start), size)
            below = _layout(np.roll(values[:size], -start), turned, turns=False)
            above = None if below is None else _layout(values[::size] - values[0], algebra.floordiv(at, size))
            if below is not None and above is not None:
                return algebra.add(below, above)
    return None


def _starts(values: IntArray) -> Iterator[int]:
    """Places at which a turned layout may start: there the step changes."""
    changes = np.flatnonzero(np.diff(values, 2)) + 1
    yield from dict.fromkeys(int(each) for place in changes[:_MOST_TURNS] for each in (place, place + 1))
