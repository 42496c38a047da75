"""Inverses of layouts [Cecka 2026, CuTe layout representation and algebra, section 3.5]."""

from __future__ import annotations

from typing import overload

import numpy as np

from argus.core.layout.coalesce import coalesce_modes
from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.faults import TABLE_LIMIT, LayoutError, too_large
from argus.core.layout.images.interpolate import interpolating_layout
from argus.core.layout.images.recover import Mismatch, recover_modes
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout, layout_of, of_modes, unchecked_layout

_IndexedMode = tuple[int, int, int]
"""(stride, extent, index at which the mode's coordinate is 1) of a mode."""


def _indexed_modes(layout: Layout) -> list[_IndexedMode]:
    parts: list[_IndexedMode] = []
    below = 1
    for extent, stride in layout.flat_modes:
        if extent != 1:
            parts.append((stride, extent, below))
            below *= extent
    return parts


@overload
def right_inverse(layout: Layout | int) -> Layout: ...
@overload
def right_inverse(layout: LayoutLike | int) -> LayoutLike: ...
def right_inverse(layout: LayoutLike | int) -> LayoutLike:
    """R with layout(R(i)) = i for all i below size(R), within the layout's domain.

    For a layout, R is the longest chain of whole modes, at least `1:0`. For a swizzle, R is the swizzle. For a composed
    layout, R composes the inverses of its parts, cut off where they stop being an inverse; if that leaves nothing, R is
    the longest layout that maps each image to its first index.
    Raises LayoutError (E806) if no element of a composed layout has the image 0.
    """
    if isinstance(layout, Swizzle):
        return layout
    if isinstance(layout, ComposedLayout):
        return _right_inverse_of_composed(layout)
    return right_inverse_of_layout(layout_of(layout))


def right_inverse_of_layout(layout: Layout) -> Layout:
    """As `right_inverse`, of a layout."""
    parts = _indexed_modes(layout)
    parts.sort()
    chain: list[tuple[int, int]] = []
    filled = 1
    for place, (stride, extent, index) in enumerate(parts):
        if stride < filled:
            continue
        if stride > filled:
            break
        if place + 1 < len(parts) and parts[place + 1][0] == stride:
            return of_modes(coalesce_modes(tuple(_longest_chain(parts))))
        chain.append((extent, index))
        filled *= extent
    return of_modes(coalesce_modes(tuple(chain)))


def _longest_chain(parts: list[_IndexedMode]) -> list[tuple[int, int]]:
    """The longest chain of modes; several modes may have the same stride.

    A mode leads from its stride to stride * extent, so the longest chain from a stride follows from those above it.
    """
    reach: dict[int, tuple[int, _IndexedMode]] = {}
    for part in sorted(parts, reverse=True):
        stride, extent, _ = part
        after = reach.get(stride * extent)
        length = extent if after is None else extent * after[0]
        if stride > 0 and (stride not in reach or length > reach[stride][0]):
            reach[stride] = (length, part)
    chain: list[tuple[int, int]] = []
    filled = 1
    while filled in reach:
        _, extent, index = reach[filled][1]
        chain.append((extent, index))
        filled *= extent
    return chain


@overload
def left_inverse(layout: Layout | int) -> Layout: ...
@overload
def left_inverse(layout: LayoutLike | int) -> LayoutLike: ...
def left_inverse(layout: LayoutLike | int) -> LayoutLike:
    """R with R(layout(i)) = i for all i below size(layout).

    If the strides nest, R is CuTe's bijection: the right inverse of `(layout, complement(layout))`. If they only divide
    each other without overlap, as in a padded tile, R reads the coordinates off as digits. Otherwise R is any layout
    with R(layout(i)) = i. The left inverse of a composed layout is composed.
    Raises LayoutError: E806 with two indices of the same image, or if no layout is such an R; E810 if undecided.
    """
    if isinstance(layout, Swizzle):
        return layout
    if isinstance(layout, ComposedLayout):
        return _left_inverse_of_composed(layout)
    return left_inverse_of_layout(layout_of(layout))


def left_inverse_of_layout(layout: Layout) -> Layout:
    """As `left_inverse`, of a layout."""
    found = _inverse_of_modes(_indexed_modes(layout), layout.size())
    if found is None:
        _check_injective(layout)
        return _interpolated_inverse(layout)
    return found


def _inverse_of_modes(parts: list[_IndexedMode], size: int) -> Layout | None:
    """The inverse on the images, if the strides nest or are those of a padded tile; else None."""
    parts.sort()
    nested = _nested_inverse(parts, size)
    return _padded_inverse(parts, size) if nested is None else nested


def _padded_inverse(parts: list[_IndexedMode], size: int) -> Layout | None:
    """The layout that takes the digits of an image, for strides that divide each other and modes that do not overlap.

    Each mode's coordinate is one digit: below the next stride, the images of the modes so far stay below it.
    """
    modes: list[tuple[int, int]] = []
    below, filled, step = 1, 1, size
    for stride, extent, index in parts:
        if stride < filled or stride % below:
            return None
        modes.append((stride // below, step))
        below, filled, step = stride, stride * extent, index
    modes.append((filled // below, step))
    return of_modes(coalesce_modes(tuple(modes)))


def _nested_inverse(parts: list[_IndexedMode], size: int) -> Layout | None:
    """The bijection of [0, n) that inverts the modes, by ascending stride, and fills the gaps between them.

    None if the strides do not nest.
    """
    modes: list[tuple[int, int]] = []
    filled = 1
    for stride, extent, index in parts:
        gap, rest = divmod(stride, filled)
        if rest or gap < 1:
            return None
        if gap > 1:
            modes.append((gap, size))
            size *= gap
        modes.append((extent, index))
        filled = stride * extent
    return of_modes(coalesce_modes(tuple(modes)))


def pseudo_inverse(layout: Layout) -> Layout:
    """The layout R that maps each image of the layout to its smallest index.

    So layout(R(layout(i))) = layout(i) for all i, R(layout(R(v))) = R(v) for each image v, and R is the left inverse of
    an injective layout. Raises LayoutError: E806 if no layout is such an R, E810 if undecided.
    """
    layout = layout_of(layout)
    parts = [part for part in _indexed_modes(layout) if part[0] != 0]
    found = _inverse_of_modes(parts, layout.size())
    return _interpolated_inverse(layout) if found is None else found


def _interpolated_inverse(layout: LayoutLike) -> Layout:
    """A layout that maps each image to its smallest index. Raises LayoutError (E806, E810)."""
    values, firsts = np.unique(layout.table(), return_index=True)
    found = interpolating_layout(dict(zip(values.tolist(), firsts.tolist(), strict=True)))
    if found is None:
        raise LayoutError(
            "E806",
            f"no layout maps the images of {layout} back to their indices",
            help="use nested strides (each a multiple of the next smaller stride times its extent), or a `Relation`",
        )
    return found


def _check_injective(layout: LayoutLike) -> None:
    """Raise LayoutError (E806) at the first index with the image of an earlier index."""
    images = layout.table()
    values, firsts = np.unique(images, return_index=True)
    if len(values) == len(images):
        return
    seen = np.zeros(len(images), np.bool_)
    seen[firsts] = True
    later = int(np.argmin(seen))
    image = int(images[later])
    earlier = int(np.flatnonzero(images == image)[0])
    raise LayoutError(
        "E806",
        f"{layout} has no left inverse: indices {earlier} and {later} both have the image {image}",
        help="use `pseudo_inverse`, or filter the modes that repeat images",
        index=later,
        expected=earlier,
        found=later,
    )


def nullspace(layout: Layout) -> Layout:
    """The layout of the indices along modes of stride 0: layout(nullspace(i)) = 0; `1:0` if there are none."""
    return of_modes([(extent, index) for stride, extent, index in _indexed_modes(layout_of(layout)) if stride == 0])


# -- composed ------------------------------------------------------------------------------------------------


def _right_inverse_of_composed(layout: ComposedLayout) -> LayoutLike:
    inner, outer = right_inverse(layout.inner), right_inverse(layout.outer)
    if isinstance(outer, Swizzle):
        outer = _restrict_to_length(outer, layout.cosize())
    if outer.size() > TABLE_LIMIT:
        raise too_large(f"{layout} has {outer.size()} images to look at")
    found = ComposedLayout(inner, -layout.offset, outer)
    indices = np.arange(outer.size(), dtype=np.int64)
    back = found.images(indices)
    good = (back >= 0) & (back < layout.size())
    good[good] = layout.images(back[good]) == indices[good]
    length = len(good) if good.all() else int(np.argmin(good))
    if length == 0:
        return _first_index_inverse(layout)
    return (
        found if length == outer.size() else ComposedLayout(inner, -layout.offset, _restrict_to_length(outer, length))
    )


def _restrict_to_length(outer: LayoutLike, length: int) -> LayoutLike:
    """The same function on [0, length)."""
    return ComposedLayout(outer, 0, unchecked_layout(length, 1))


def _first_index_inverse(layout: ComposedLayout) -> LayoutLike:
    """The longest prefix of the map from image to first index that is an offset plus a layout."""
    values, firsts = np.unique(layout.table(), return_index=True)
    zero = int(np.searchsorted(values, 0))
    if zero == len(values) or values[zero] != 0:
        raise LayoutError(
            "E806",
            f"no element of {layout} has the image 0",
            help="a right inverse begins at the image 0: subtract the offset",
            index=0,
            expected=0,
        )
    missing = values[zero:] != np.arange(len(values) - zero)
    starts = firsts[zero : zero + int(np.argmax(missing))] if missing.any() else firsts[zero:]
    places = unchecked_layout(layout.size(), 1)
    for length in range(len(starts), 1, -1):
        modes = recover_modes((starts[:length] - starts[0]).astype(np.int64))
        if not isinstance(modes, Mismatch):
            return ComposedLayout(places, int(starts[0]), of_modes(modes))
    return ComposedLayout(places, int(starts[0]), unchecked_layout(1, 0))


def _left_inverse_of_composed(layout: ComposedLayout) -> LayoutLike:
    if layout.size() > TABLE_LIMIT:
        raise too_large(f"{layout} has {layout.size()} elements")
    _check_injective(layout)
    try:
        outer = _restrict_to_length(left_inverse(layout.outer), layout.cosize())
        found = ComposedLayout(left_inverse(layout.inner), -layout.offset, outer)
    except LayoutError:
        return _interpolated_inverse(layout)
    indices = np.arange(layout.size(), dtype=np.int64)
    agrees = np.array_equal(found.images(layout.images(indices)), indices)
    return found if agrees else _interpolated_inverse(layout)
