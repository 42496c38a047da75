"""The part that two layouts have in common from offset 0 on, for the longest vector of a copy between them."""

from __future__ import annotations

from typing import overload

import numpy as np

from argus.core.layout.coalesce import coalesce_modes
from argus.core.layout.compose import composition
from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.faults import TABLE_LIMIT
from argus.core.layout.images.recover import Mismatch, recover_modes
from argus.core.layout.images.steps import first_deviation, steps
from argus.core.layout.inverse import right_inverse, right_inverse_of_layout
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import IntArray, Layout, layout_of, of_modes, unchecked_layout


@overload
def max_common_layout(a: Layout, b: Layout) -> Layout: ...
@overload
def max_common_layout(a: LayoutLike, b: LayoutLike) -> LayoutLike: ...
def max_common_layout(a: LayoutLike, b: LayoutLike) -> LayoutLike:
    """R with a(R(i)) = i = b(R(i)) for all i below size(R): the longest prefix of the right inverse of `b`.

    A vector must stay whole wherever it begins, so where a swizzle of only one of both moves any, R has at most the
    elements that it moves together, as in CuTe, even if the first row agrees further.
    Raises LayoutError: E806 if no element of a composed `b` has the image 0, E810 if a table would be too large.
    """
    if isinstance(a, Swizzle | ComposedLayout) or isinstance(b, Swizzle | ComposedLayout):
        return _common_of_functions(a, b)
    return _common_of_layouts(layout_of(a), right_inverse_of_layout(layout_of(b)))


def _common_of_functions(a: LayoutLike, b: LayoutLike) -> LayoutLike:
    """The prefix of the right inverse on which `a` agrees, read off tables."""
    inverse = right_inverse(b)
    places = inverse.table()
    agrees = (places >= 0) & (places < a.size()) & (a.images(places) == np.arange(len(places)))
    length = len(places) if agrees.all() else int(agrees.argmin())
    if not _moved_alike(a, b):
        inside = places[(places >= 0) & (places < min(a.size(), b.size()))]
        length = min(length, _together(a, inside), _together(b, inside))
    if length < 2:
        return unchecked_layout(1, 0)
    if not isinstance(inverse, Layout):
        return composition(inverse, unchecked_layout(length, 1))
    modes = next(found for n in range(length, 0, -1) if not isinstance(found := recover_modes(places[:n]), Mismatch))
    return of_modes(modes)


def _moved_alike(a: LayoutLike, b: LayoutLike) -> bool:
    return (
        isinstance(a, ComposedLayout) and isinstance(b, ComposedLayout) and (a.outer, a.offset) == (b.outer, b.offset)
    )


def _together(layout: LayoutLike, indices: IntArray) -> int:
    """The most consecutive elements that every swizzle moves together, of those that move any of these indices."""
    if isinstance(layout, ComposedLayout):
        middle = layout.inner.images(indices) + layout.offset
        return min(_together(layout.inner, indices), _together(layout.outer, middle))
    moves = isinstance(layout, Swizzle) and bool((layout.images(indices) != indices).any())
    return 1 << layout.base if isinstance(layout, Swizzle) and moves else TABLE_LIMIT


def _common_of_layouts(a: Layout, inverse: Layout) -> Layout:
    modes = inverse.flat_modes
    slope, jumps = steps(a.flat_modes)
    # `a` after the inverse is the identity while each mode's image continues the interval and `a` is linear on the
    # modes.
    prefix: list[tuple[int, int]] = []
    filled = 1
    for extent, stride in modes:
        if slope * stride + sum(jump * (stride // below) for below, jump in jumps) != filled:
            break
        deviation = first_deviation(jumps, [*prefix, (extent, stride)])
        length = extent if deviation is None else deviation // filled
        if length > 1:
            prefix.append((length, stride))
        filled *= extent
        if length < extent:
            break
    size = a.size()
    return _truncate_to_size(prefix, size)


def _truncate_to_size(modes: list[tuple[int, int]], size: int) -> Layout:
    """The longest prefix of the modes whose indices stay below `size`."""
    prefix: list[tuple[int, int]] = []
    room = size - 1
    for extent, stride in modes:
        length = min(extent, room // stride + 1) if stride else extent
        if length > 1:
            prefix.append((length, stride))
        room -= (length - 1) * stride
        if length < extent:
            break
    return of_modes(coalesce_modes(tuple(prefix)))


def max_common_vector(a: LayoutLike, b: LayoutLike) -> int:
    """The number of elements that are contiguous in both layouts, from offset 0: the size of `max_common_layout`."""
    return max_common_layout(a, b).size()
