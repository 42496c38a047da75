"""Recast layouts, swizzles and swizzled layouts: address the same memory in wider or narrower elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast, overload

from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.faults import LayoutError, malformed
from argus.core.layout.inttuple import IntTuple, integer, unflatten
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout, layout_of, unchecked_layout

_Change = Callable[[IntTuple, IntTuple], tuple[IntTuple, IntTuple]]


@overload
def upcast(layout: Layout, count: int) -> Layout: ...
@overload
def upcast(layout: Swizzle, count: int) -> Swizzle: ...
@overload
def upcast(layout: LayoutLike, count: int) -> LayoutLike: ...
def upcast(layout: LayoutLike, count: int) -> LayoutLike:
    """The layout of vectors of `count` elements: with each mode x = width * x' + y, layout(x) // count = R(x').

    A mode of stride d < count splits into runs of width min(extent, count / d); every other stride must be a multiple
    of `count`. So one x' covers exactly the elements of one vector. Of a swizzle, R(x // count) = swizzle(x) // count;
    a swizzled layout is recast part by part. Raises LayoutError: E801 unless count > 0, E807 if a stride, an extent or
    an offset does not divide, if two modes step over the same elements of a vector, or if a swizzle moves a vector's
    elements apart.
    """
    count = _positive(count)
    if isinstance(layout, Swizzle):
        return _upcast_swizzle(layout, count)
    if isinstance(layout, ComposedLayout):
        if layout.offset % count:
            raise _indivisible(layout, count, f"the offset {layout.offset} is inside a vector")
        return ComposedLayout(upcast(layout.outer, count), layout.offset // count, upcast(layout.inner, count))
    return _upcast_layout(layout_of(layout), count)


def _upcast_swizzle(swizzle: Swizzle, count: int) -> Swizzle:
    """The bits below the vector's size vanish; those that the swizzle reads must not be among them."""
    lost = _bits_of_vector(swizzle, count)
    if swizzle.bits == 0 or lost <= swizzle.base:
        return Swizzle(swizzle.bits, max(0, swizzle.base - lost), swizzle.shift)
    if swizzle.shift < 0:
        raise _indivisible(swizzle, count, "it moves the elements of a vector to different vectors")
    return Swizzle(max(0, swizzle.bits + swizzle.base - lost), 0, swizzle.shift)


def _bits_of_vector(swizzle: Swizzle, count: int) -> int:
    if count & (count - 1):
        raise _indivisible(swizzle, count, "a swizzle permutes bits, and the vector's size is no power of two")
    return count.bit_length() - 1


def _upcast_layout(layout: Layout, count: int) -> Layout:
    inside = 0

    def shrink(extent: IntTuple, stride: IntTuple) -> tuple[IntTuple, IntTuple]:
        nonlocal inside
        if isinstance(extent, tuple):
            return _by_leaf(shrink, extent, cast(tuple[IntTuple, ...], stride))
        step = cast(int, stride)
        if step % count == 0 or extent == 1:
            return extent, step // count
        width = count // step if step > 0 else 0
        if width < 1 or count % step or (extent > width and extent % width):
            raise _indivisible(layout, count, f"the mode {extent}:{step} does not split into vectors of {count}")
        width = min(width, extent)
        inside += (width - 1) * step
        return extent // width, -(-step // count)

    result = unchecked_layout(*shrink(layout.shape, layout.stride))
    if inside >= count:
        raise _indivisible(layout, count, "two modes step over the same elements of a vector")
    return result


@overload
def downcast(layout: Layout, count: int) -> Layout: ...
@overload
def downcast(layout: Swizzle, count: int) -> Swizzle: ...
@overload
def downcast(layout: LayoutLike, count: int) -> LayoutLike: ...
def downcast(layout: LayoutLike, count: int) -> LayoutLike:
    """The layout of the `count` parts of each element: strides grow by `count`, and the mode of stride 1 is refined.

    For the mode of stride 1, R(count * x + y in that mode) = count * layout(x) + y; a mode of extent 1 counts as it
    only if there is no other. Without a mode of stride 1, R(x) is the first part of element x. Of a swizzle,
    R(count * x + y) = count * swizzle(x) + y; a swizzled layout is recast part by part. Raises LayoutError: E801
    unless count > 0, E807 where several modes with extents above 1 have stride 1, or if a swizzle is to be recast by a
    count that is no power of two.
    """
    count = _positive(count)
    if isinstance(layout, Swizzle):
        return Swizzle(layout.bits, layout.base + _bits_of_vector(layout, count), layout.shift)
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(downcast(layout.outer, count), layout.offset * count, downcast(layout.inner, count))
    return _downcast_layout(layout_of(layout), count)


def _downcast_layout(layout: Layout, count: int) -> Layout:
    modes = layout.flat_modes
    units = [place for place, (extent, stride) in enumerate(modes) if stride == 1 and extent > 1]
    if len(units) > 1:
        raise _indivisible(layout, count, "several modes have stride 1, and the parts belong to one")
    if not units:
        units = [place for place, (_, stride) in enumerate(modes) if stride == 1][:1]
    extents = [extent * count if place in units else extent for place, (extent, _) in enumerate(modes)]
    strides = [stride if place in units else stride * count for place, (_, stride) in enumerate(modes)]
    return unchecked_layout(unflatten(tuple(extents), layout.shape), unflatten(tuple(strides), layout.shape))


@overload
def recast(layout: Layout, old_bits: int, new_bits: int) -> Layout: ...
@overload
def recast(layout: LayoutLike, old_bits: int, new_bits: int) -> LayoutLike: ...
def recast(layout: LayoutLike, old_bits: int, new_bits: int) -> LayoutLike:
    """The layout of elements of `old_bits`, recast to elements of `new_bits`.

    Raises LayoutError like `upcast`, and E807 if neither width is a multiple of the other.
    """
    old_bits, new_bits = _positive(old_bits), _positive(new_bits)
    if new_bits % old_bits == 0:
        return upcast(layout, new_bits // old_bits)
    if old_bits % new_bits == 0:
        return downcast(layout, old_bits // new_bits)
    raise _indivisible(layout, new_bits, f"{old_bits} bits and {new_bits} bits are no multiples of each other")


def _by_leaf(
    change: _Change, extents: tuple[IntTuple, ...], strides: tuple[IntTuple, ...]
) -> tuple[IntTuple, IntTuple]:
    pairs = [change(*pair) for pair in zip(extents, strides, strict=True)]
    return tuple([extent for extent, _ in pairs]), tuple([stride for _, stride in pairs])


def _positive(count: int) -> int:
    if integer(count, "a number of elements or bits") < 1:
        raise malformed(f"{count} elements or bits", "give a positive number")
    return integer(count, "a number of elements or bits")


def _indivisible(layout: LayoutLike, count: int, reason: str) -> LayoutError:
    return LayoutError(
        "E807", f"{layout} by {count}: {reason}", help="use extents and strides that are multiples of the vector"
    )
