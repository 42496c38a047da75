"""The modes of a thread-value layout, each along one axis of its tile."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from argus.core.layout.inttuple import IntTuple
from argus.core.layout.values import Layout


@frozen
class AxisMode:
    """`extent` steps of `step` along one axis. axis: None for replication. above: product of the extents before it."""

    axis: int | None
    step: int
    extent: int
    above: int


def axis_modes(layout: Layout, tile: tuple[int, ...]) -> list[AxisMode]:
    """The modes of a layout of element numbers, first axis fastest, split where they cross the end of an axis.

    Raises ValueError for a mode that crosses it unevenly.
    """
    found: list[AxisMode] = []
    above = 1
    for extent, stride in layout.flat_modes:
        rest = extent
        while rest > 1:
            move = _first_axis_mode(rest, stride * (extent // rest), above, tile)
            found.append(move)
            above *= move.extent
            rest //= move.extent
    return found


def _first_axis_mode(extent: int, stride: int, above: int, tile: tuple[int, ...]) -> AxisMode:
    if stride == 0:
        return AxisMode(None, 0, extent, above)
    below = 1
    for axis, size in enumerate(tile):
        if below <= stride < below * size:
            step = stride // below
            room = -(-size // step)
            if stride % below == 0 and (extent <= room or (size % step == 0 and extent % room == 0)):
                return AxisMode(axis, step, min(extent, room), above)
            break
        below *= size
    raise ValueError(f"mode {extent}:{stride} does not move along the axes of a tile of {tile}")


def layout_from_modes(modes: Iterable[tuple[int, int]], size: int | None = None) -> Layout:
    """The layout of these (extent, stride) pairs, with contiguous neighbours merged; `size`:0 if there are none."""
    found: list[tuple[int, int]] = []
    for extent, stride in modes:
        if found and stride == found[-1][0] * found[-1][1]:
            found[-1] = (found[-1][0] * extent, found[-1][1])
        elif extent > 1:
            found.append((extent, stride))
    if not found:
        return Layout(size or 1, 0)
    if len(found) == 1:
        return Layout(*found[0])
    shape: IntTuple = tuple(extent for extent, _ in found)
    return Layout(shape, tuple(stride for _, stride in found))
