"""Concrete addresses of a copy's elements: offsets in shared memory, byte addresses in global memory, TMA boxes."""

from __future__ import annotations

from math import prod

import numpy as np

from argus.core.cost.groups import Group, Numbers
from argus.core.index import Cond, Index
from argus.core.ir import Copy, Staged, Strided, View, static
from argus.core.memory.lane_accesses import by_wave
from argus.core.proof.limits.memory import axis_modes, offsets_along
from argus.core.walk import IntArray, evaluate


class NotModelledError(Exception):
    """The statement's behaviour depends on data, or the model does not cover its kind."""


def value_of(root: Index | Cond, numbers: Numbers, coords: tuple[IntArray, ...] = ()) -> IntArray:
    """The value of an expression. Raises NotModelledError where it depends on data."""
    try:
        return np.asarray(evaluate(root, numbers, coords), np.int64)
    except (KeyError, ZeroDivisionError, IndexError) as error:
        raise NotModelledError(f"a value known only at run time ({error})") from error


def coordinates(stmt: Copy, group: Group) -> tuple[IntArray, ...]:
    """Coordinates of the elements that the group's threads move, one array per axis of the tile, (threads, values)."""
    rows = slice(group.first, group.first + group.threads)
    return tuple(axis[rows] for axis in stmt.by.coordinates())


def moved_shape(stmt: Copy, group: Group) -> tuple[int, int]:
    """(threads of the group that move elements, values per thread)."""
    return len(stmt.by.elements()[group.first : group.first + group.threads]), stmt.by.values.size()


def offsets(
    view: View, coords: tuple[IntArray, ...], numbers: Numbers, shape: tuple[int, ...] | None = None
) -> IntArray:
    """Element offsets in a shared buffer, after layout and swizzle. shape: (threads, values), that of `coords`.

    Raises NotModelledError for a data-dependent offset, or one outside the buffer.
    """
    layout = view.buffer.layout
    assert isinstance(layout, Staged)
    total = np.zeros(coords[0].shape if shape is None else shape, np.int64)
    for at, mode in zip(view.at, axis_modes(layout.layout), strict=True):
        along = offsets_along(mode, np.broadcast_to(value_of(at, numbers, coords), total.shape))
        if along is None:
            raise NotModelledError(f"an offset outside `{view.buffer.name}`")
        total = total + along
    return total if layout.swizzle is None else layout.swizzle.images(total)


def addresses(stmt: Copy, view: View, group: Group) -> IntArray:
    """Byte addresses relative to a global tensor, shape (threads, values); -1 out of bounds, if the copy is masked."""
    layout = view.buffer.layout
    assert isinstance(layout, Strided)
    coords, numbers, shape = coordinates(stmt, group), group.numbers, moved_shape(stmt, group)
    total, within = np.zeros(shape, np.int64), np.ones(shape, np.bool_)
    for at, stride, extent in zip(view.at, layout.strides, view.buffer.shape, strict=True):
        place = value_of(at, numbers, coords)
        total = total + place * value_of(stride, numbers)
        within &= (place >= 0) & (place < value_of(extent, numbers))
    total = total * view.buffer.dtype.bits // 8
    return np.where(within, total, -1) if stmt.edge is not None else total


def executions(places: IntArray, vector: int, unit: int) -> IntArray:
    """Offsets of each vector's first element, shape (waves, vectors per thread, lanes); drops a partial last wave."""
    threads = places.shape[0] // unit * unit
    return by_wave(places[:threads, ::vector], unit)


def start(view: View, numbers: Numbers) -> tuple[IntArray, ...]:
    """Coordinates of the view's first element, per axis of its buffer; one value per block for concurrent blocks."""
    origin = tuple(np.zeros((), np.int64) for _ in view.shape)
    return tuple(value_of(at, numbers, origin) for at in view.at)


def _spans(view: View, numbers: Numbers) -> tuple[int, ...]:
    """The view's extent along each axis of its buffer; 1 along axes on which its coordinate is constant."""
    last = tuple(value_of(extent, numbers) - 1 for extent in view.shape)
    moved = [value_of(at, numbers, last) - first for at, first in zip(view.at, start(view, numbers), strict=True)]
    return tuple(int(each.flat[0]) + 1 for each in moved)


def bytes_inside(view: View, numbers: Numbers) -> IntArray:
    """In-bounds bytes of a box; one value per block for concurrent blocks."""
    total: IntArray = np.asarray(view.buffer.dtype.bits // 8, np.int64)
    for first, span, extent in zip(start(view, numbers), _spans(view, numbers), view.buffer.shape, strict=True):
        low, high = np.maximum(first, 0), np.minimum(first + span, value_of(extent, numbers))
        total = total * np.maximum(0, high - low)
    return total


def line_bytes(view: View, numbers: Numbers, line: int, least: float) -> float:
    """Bytes of the cache lines that the in-bounds rows of a box touch.

    least: minimum bytes charged for a row within one line. numbers: of one block.
    """
    layout, size = view.buffer.layout, view.buffer.dtype.bits / 8
    assert isinstance(layout, Strided)
    strides = [int(value_of(stride, numbers)) for stride in layout.strides]
    begins = [int(each) for each in start(view, numbers)]
    spans = _spans(view, numbers)
    ends = [int(value_of(extent, numbers)) for extent in view.buffer.shape]
    fast = strides.index(1) if 1 in strides else len(strides) - 1
    places: IntArray = np.zeros(1, np.int64)
    for axis, (first, span, end, stride) in enumerate(zip(begins, spans, ends, strides, strict=True)):
        along = np.arange(max(0, first), max(0, min(first + span, end)), dtype=np.int64) * stride
        if axis != fast:
            places = (places[:, None] + along).ravel()
    low, high = max(0, begins[fast]), min(begins[fast] + spans[fast], ends[fast])
    if high <= low:
        return 0.0
    width = (high - low) * size
    first_byte = (places + low) * size
    count = (first_byte + width - 1) // line - first_byte // line + 1
    return float(np.where(count == 1, max(width, least), count * line).sum())


def elements(view: View) -> int:
    return prod(static(extent) for extent in view.shape)
