"""Which elements each target of a fold takes: all of its row, those up to its own place, or the last.

Decided by layouts alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from argus.core.ir import Fold, static
from argus.core.layout import TV
from argus.core.walk import IntArray


@frozen(eq=False)
class Takes:
    """Which elements of the source go into each target. cells: (targets, most), numbers of (thread, value); -1: none.
    first: one element of each target, (thread, value) of the target's shape, twice. held: who holds the target.
    twins: of each element of the source the one that is taken for it: what several threads hold counts once.
    """

    cells: IntArray
    twins: IntArray
    first: tuple[IntArray, IntArray]
    held: TV
    values: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.first[0].shape[0], self.first[0].shape[1]

    def table(self, table: IntArray) -> IntArray:
        """What the elements of each target have in a table over the source; the first's where there is none."""
        flat = np.broadcast_to(table, (table.shape[0], self.values)).reshape(-1)
        own = flat[np.maximum(self.cells, 0)]
        return np.where(self.cells >= 0, own, own[:, :1])

    def replicated(self, table: IntArray) -> bool:
        """Whether elements that count as one have one number in a table over the source."""
        flat = np.broadcast_to(table, (table.shape[0], self.values)).reshape(-1)
        return np.array_equal(flat, flat[self.twins])


def takes(stmt: Fold, unit: int) -> Takes | None:
    """The table of a fold of whole tiles, each element of a row once; None if some target takes nothing."""
    source, target = stmt.source.buffer.layout, stmt.target.buffer.layout
    assert isinstance(source, TV)
    assert isinstance(target, TV)
    if stmt.keep == "prefix" and len(target.coordinates()) != len(source.coordinates()):
        return None
    shape = tuple(static(extent) for extent in stmt.source.shape)
    coordinates = source.coordinates()
    size = source.threads.size(), source.values.size()
    others = [axis for axis in range(len(shape)) if axis != stmt.axis]
    group = np.arange(size[0])[:, None] // (1 if stmt.within == "thread" else unit)
    rows = _number(
        [np.broadcast_to(coordinates[axis], size) for axis in others], [shape[axis] for axis in others], size
    )
    keys = (np.broadcast_to(group, size) * max(1, int(np.prod([shape[axis] for axis in others]))) + rows).reshape(-1)
    along = np.broadcast_to(coordinates[stmt.axis], size).reshape(-1)
    order = np.lexsort((along, keys))
    fresh = np.ones(order.size, np.bool_)
    fresh[1:] = (keys[order][1:] != keys[order][:-1]) | (along[order][1:] != along[order][:-1])
    twins = np.empty(order.size, np.int64)
    twins[order] = order[fresh][np.cumsum(fresh) - 1]
    order = order[fresh]
    names, starts, counts = np.unique(keys[order], return_index=True, return_counts=True)
    wanted = _wanted(stmt, target, shape, others, unit)
    place = np.searchsorted(names, wanted)
    if (place >= len(names)).any() or (names[place] != wanted).any():
        return None
    number = np.arange(int(counts.max()))[None, :]
    flat = place.reshape(-1)
    there = number < counts[flat][:, None]
    cells = np.where(there, order[np.minimum(starts[flat][:, None] + number, order.size - 1)], -1)
    if stmt.op == "last":
        last = np.take_along_axis(cells, counts[flat][:, None] - 1, axis=1)
        cells = last if stmt.keep == "total" else cells
    if stmt.keep == "prefix":
        upto = np.broadcast_to(target.coordinates()[stmt.axis], wanted.shape).reshape(-1)[:, None]
        cells = np.where((cells >= 0) & (along[np.maximum(cells, 0)] <= upto), cells, -1)
    first = cells[:, 0].reshape(wanted.shape)
    return Takes(cells, twins, (first // size[1], first % size[1]), target, size[1])


def _number(parts: Sequence[IntArray], extents: Sequence[int], shape: tuple[int, int]) -> IntArray:
    number, below = np.zeros(shape, np.int64), 1
    for part, extent in zip(parts, extents, strict=True):
        number, below = number + part * below, below * extent
    return number


def _wanted(stmt: Fold, target: TV, shape: tuple[int, ...], others: Sequence[int], unit: int) -> IntArray:
    """The key of the row that each target takes."""
    axes, size = target.coordinates(), (target.threads.size(), target.values.size())
    dropped = len(target.tile) < len(shape)
    kept = [np.broadcast_to(axes[at if not dropped else at - (at > stmt.axis)], size) for at in others]
    rows = _number(kept, [shape[axis] for axis in others], size)
    group = np.arange(size[0])[:, None] // (1 if stmt.within == "thread" else unit)
    return np.broadcast_to(group, size) * max(1, int(np.prod([shape[axis] for axis in others]))) + rows
