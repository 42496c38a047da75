"""Recover a layout from a table of images, or the smallest index at which no layout agrees.

The coalesced form of a layout is unique, so its modes can be read off a table one after another: the first mode
ends where the difference of neighbours first changes, and the remaining table has the first element of each
repetition. Each value is either free (the stride of a new mode) or forced by earlier values; the first forced value
that differs is therefore the smallest index at which no layout of this size agrees.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from argus.core.layout.inttuple import IntTuple, flatten
from argus.core.layout.values import IntArray, Layout, of_modes, unchecked_layout


@frozen
class Mismatch:
    """The smallest index at which no layout agrees with a table.

    image: the table's value there. forced: the value that earlier values of the table force.
    """

    index: int
    image: int
    forced: int


def recover_modes(values: IntArray) -> list[tuple[int, int]] | Mismatch:
    """The coalesced (extent, stride) modes of a nonempty table of images, or its first mismatch.

    Absolute values must be below `tables.LARGEST`. The code compares differences of neighbours, since a product of
    index and stride could wrap around in 64 bits.
    """
    if values[0] != 0:
        return Mismatch(0, int(values[0]), 0)
    modes: list[tuple[int, int]] = []
    worst: Mismatch | None = None
    scale = 1
    while len(values) > 1:
        difference = np.diff(values)
        stride = int(difference[0])
        bends = difference != stride
        extent = int(bends.argmax()) + 1 if bends.any() else len(values)
        if len(values) % extent:
            return _first_of(worst, _mismatch_at(values, extent, stride, scale))
        rows = values.reshape(-1, extent)
        wrong = np.diff(rows, axis=1) != stride
        if wrong.any():
            row, column = divmod(int(wrong.argmax()), extent - 1)
            worst = _first_of(worst, _mismatch_at(values, row * extent + column + 1, stride, scale))
        modes.append((extent, stride))
        values = rows[:, 0]
        scale *= extent
    return modes if worst is None else worst


def recover_layout(values: IntArray, shape: IntTuple) -> Layout | Mismatch:
    """A layout with these images whose shape refines `shape` leaf by leaf, or the first mismatch.

    The size of the shape must be the number of values. Such a layout exists if and only if the table of each leaf is a
    layout and the image of every coordinate is the sum of the images of its leaves.
    """
    worst: Mismatch | None = Mismatch(0, int(values[0]), 0) if values[0] != 0 else None
    leaves: list[Layout] = []
    below = 1
    for extent in flatten(shape):
        block = values[: below * extent].reshape(extent, below)
        modes = recover_modes(block[:, 0])
        if isinstance(modes, Mismatch):
            worst = _first_of(worst, Mismatch(modes.index * below, modes.image, modes.forced))
        else:
            leaves.append(of_modes(modes))
        wrong = block - block[:, :1] != block[:1]
        if wrong.any():
            row, column = divmod(int(wrong.argmax()), below)
            forced = int(block[row, 0]) + int(block[0, column])
            worst = _first_of(worst, Mismatch(row * below + column, int(block[row, column]), forced))
        below *= extent
    return _nest_leaves(shape, leaves) if worst is None else worst


def _mismatch_at(values: IntArray, place: int, stride: int, scale: int) -> Mismatch:
    return Mismatch(place * scale, int(values[place]), int(values[place - 1]) + stride)


def _first_of(a: Mismatch | None, b: Mismatch) -> Mismatch:
    return b if a is None or b.index < a.index else a


def _nest_leaves(shape: IntTuple, leaves: list[Layout]) -> Layout:
    rest = iter(leaves)

    def fill(part: IntTuple) -> Layout:
        if not isinstance(part, tuple):
            return next(rest)
        modes = list(map(fill, part))
        return unchecked_layout(tuple([mode.shape for mode in modes]), tuple([mode.stride for mode in modes]))

    return fill(shape)
