"""`Layout`: a function from coordinates to integers, defined by congruent trees `shape : stride`.

Names and conventions are CuTe's [Cecka 2026, CuTe layout representation and algebra, section 2.2]; the order of
coordinates is colexicographic, first mode fastest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Index
from argus.core.layout.faults import TABLE_LIMIT, LayoutError, malformed, misplaced, too_large
from argus.core.layout.inttuple import (
    Coordinate,
    IntTuple,
    checked,
    checked_coordinate,
    congruent,
    flatten,
    has_none,
    image,
    integer,
    prefix_product,
    product,
    slice_,
    suffix_product,
    text,
)
from argus.core.layout.pictures.grid import MAX_CELLS, as_html, index_grid

IntArray = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer[Any]]


_new = object.__new__
_set = object.__setattr__


@frozen(init=False, repr=False, cache_hash=False)
class Layout:
    """`shape : stride`. Extents are positive; strides are any integers, column-major by default.

    Calling it on an index or a coordinate returns the image; as in CuTe, an index beyond the size extends the last
    mode. Calling it with None in the coordinate returns the sublayout of the modes at None.
    Raises LayoutError: E801 for trees that form no layout, E803 for a coordinate or a mode that does not fit.
    """

    shape: IntTuple
    stride: IntTuple
    _flat: tuple[tuple[int, int], ...] | None = field(default=None, eq=False, init=False)

    def __init__(self, shape: IntTuple, stride: IntTuple | None = None) -> None:
        extents = checked(shape, "shape")
        steps = prefix_product(extents) if stride is None else checked(stride, "stride")
        if not congruent(extents, steps):
            raise malformed(
                f"shape {text(extents)} and stride {text(steps)} are not congruent",
                "give a stride for each extent, in the same nesting",
            )
        for extent in flatten(extents):
            if extent <= 0:
                raise malformed(
                    f"shape {text(extents)} has the extent {extent}, expected at least 1", "use positive extents"
                )
        _set(self, "shape", extents)
        _set(self, "stride", steps)
        _set(self, "_flat", None)

    @property
    def flat_modes(self) -> tuple[tuple[int, int], ...]:
        """(extent, stride) of every leaf, first fastest."""
        if self._flat is None:
            _set(self, "_flat", _leaves(self.shape, self.stride))
        return cast(tuple[tuple[int, int], ...], self._flat)

    def size(self) -> int:
        """The number of elements of the domain."""
        return product(self.shape)

    def cosize(self) -> int:
        """One more than the largest image of the domain; modes with negative strides do not count."""
        return 1 + sum((extent - 1) * stride for extent, stride in self.flat_modes if stride > 0)

    def table(self) -> IntArray:
        """The images of 0 .. size-1. Raises LayoutError (E810) above TABLE_LIMIT elements."""
        if self.size() > TABLE_LIMIT:
            raise too_large(f"{self} has {self.size()} elements")
        _check_62_bits(self, sum([(extent - 1) * abs(stride) for extent, stride in self.flat_modes]))
        images = np.zeros(1, np.int64)
        for extent, stride in self.flat_modes:
            images = (images[None, :] + stride * np.arange(extent, dtype=np.int64)[:, None]).reshape(-1)
        return images

    @overload
    def __call__(self, *coord: IntTuple) -> int: ...  # pyright: ignore[reportOverlappingOverload] reason: None slices
    @overload
    def __call__(self, *coord: Coordinate) -> Layout: ...
    def __call__(self, *coord: Coordinate) -> int | Layout:
        place = coord[0] if len(coord) == 1 else coord
        if place.__class__ is int:
            rest = cast(int, place)
            modes = self.flat_modes
            total = 0
            for extent, stride in modes[:-1]:
                total += rest % extent * stride
                rest //= extent
            return total + rest * modes[-1][1] if modes else 0
        place = checked_coordinate(place)
        if has_none(place):
            return unchecked_layout(slice_(place, self.shape), slice_(place, self.stride))
        return image(place, self.shape, self.stride)

    def images(self, indices: Integers) -> IntArray:
        """The image of each index, like a call.

        Raises LayoutError: E801 for an array of anything but integers, E810 beyond 62 bits.
        """
        rest = indices_of(indices)
        total = np.zeros(rest.shape, np.int64)
        modes = self.flat_modes
        largest = max(-int(rest.min()), int(rest.max())) if rest.size else 0
        _check_62_bits(self, max(largest, 1) * max([abs(stride) for _, stride in modes], default=0) * len(modes))
        for extent, stride in modes[:-1]:
            total += rest % extent * stride
            rest = rest // extent
        return total + rest * modes[-1][1] if modes else total

    def at(self, index: Index) -> Index:
        """The image of a symbolic index within the size."""
        terms: list[tuple[Index, int]] = []
        below = 1
        modes = self.flat_modes
        for position, (extent, stride) in enumerate(modes):
            rest = algebra.floordiv(index, below)
            digit = rest if position == len(modes) - 1 else algebra.mod(rest, extent)
            terms.append((digit, stride))
            below *= extent
        return algebra.linear(terms, 0)

    def __len__(self) -> int:
        """The rank: the number of modes."""
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    def __iter__(self) -> Iterator[Layout]:
        """The modes, each a layout."""
        if not isinstance(self.shape, tuple):
            return iter((self,))
        strides = cast(tuple[IntTuple, ...], self.stride)
        return iter([unchecked_layout(*mode) for mode in zip(self.shape, strides, strict=True)])

    def __getitem__(self, mode: int | slice) -> Layout:
        if isinstance(self.shape, tuple):
            try:
                return unchecked_layout(self.shape[mode], cast(tuple[IntTuple, ...], self.stride)[mode])
            except (IndexError, TypeError):
                pass
        elif mode in (0, -1):
            return self
        raise misplaced(f"{self} has no mode {mode}: its rank is {len(self)}", f"give one of 0 .. {len(self) - 1}")

    def svg(self) -> str:
        """The grid of its images as an SVG document. Raises LayoutError (E813) above 4096 elements."""
        return index_grid(self).svg()

    def _repr_svg_(self) -> str | None:
        return self.svg() if self.size() <= MAX_CELLS else None

    def _repr_html_(self) -> str:
        return as_html(self)

    def __str__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"

    def __repr__(self) -> str:
        return f"Layout({self.shape}, {self.stride})"

    def __reduce__(self) -> tuple[object, ...]:
        return Layout, (self.shape, self.stride)


def unchecked_layout(shape: IntTuple, stride: IntTuple) -> Layout:
    """A layout of trees that are known to be congruent with positive extents; skips the checks."""
    made = _new(Layout)
    _set(made, "shape", shape)
    _set(made, "stride", stride)
    _set(made, "_flat", None)
    return made


def of_modes(modes: list[tuple[int, int]]) -> Layout:
    """The flat layout of (extent, stride) pairs: of depth 0 for a single pair, `1:0` for none. Skips the checks."""
    if len(modes) == 1:
        return unchecked_layout(*modes[0])
    if not modes:
        return unchecked_layout(1, 0)
    shape, stride = zip(*modes, strict=True)
    return unchecked_layout(shape, stride)


def _leaves(shape: IntTuple, stride: IntTuple) -> tuple[tuple[int, int], ...]:
    if shape.__class__ is int:
        return ((cast(int, shape), cast(int, stride)),)
    found: list[tuple[int, int]] = []
    for extent, step in zip(cast(tuple[IntTuple, ...], shape), cast(tuple[IntTuple, ...], stride), strict=True):
        if extent.__class__ is int:
            found.append((cast(int, extent), cast(int, step)))
        else:
            found += _leaves(extent, step)
    return tuple(found)


def layout_of(value: object) -> Layout:
    """A layout, or `n:1` for an int. Raises LayoutError (E801) for anything else."""
    if isinstance(value, Layout):
        return value
    if not hasattr(value, "__index__"):
        raise malformed(f"expected a layout, found {value!r}", "write `Layout(shape, stride)`")
    return Layout(integer(value, "an extent"))


def indices_of(values: Integers) -> IntArray:
    """The array as 64-bit integers. Raises LayoutError: E801 for non-integers, E810 beyond 62 bits."""
    found = np.asarray(values)
    if found.dtype == np.int64:
        return cast(IntArray, found)
    if not np.issubdtype(found.dtype, np.integer):
        raise malformed(f"indices of {found.dtype}", "give an array of integers")
    if found.dtype == np.uint64 and found.size and int(found.max()) >> 62:
        raise too_large(f"the index {found.max()}")
    return found.astype(np.int64)


def _check_62_bits(layout: Layout, largest: int) -> None:
    if largest >> 62:
        raise LayoutError(
            "E810",
            f"{layout} has images of more than 62 bits, which no array of integers holds",
            help="call it on the indices you need, one at a time",
        )


def make_layout(*modes: Layout | Iterable[Layout]) -> Layout:
    """The layout with these modes; an argument may be an iterable of layouts."""
    layouts: list[Layout] = []
    for mode in modes:
        if isinstance(mode, Layout):
            layouts.append(mode)
        else:
            layouts += map(layout_of, mode if hasattr(mode, "__iter__") else (mode,))
    return unchecked_layout(tuple([mode.shape for mode in layouts]), tuple([mode.stride for mode in layouts]))


def column_major(shape: IntTuple) -> Layout:
    """Compact, first mode fastest."""
    return Layout(shape)


def row_major(shape: IntTuple) -> Layout:
    """Compact, last mode fastest."""
    return Layout(shape, suffix_product(checked(shape, "shape")))


def make_ordered_layout(shape: IntTuple, order: IntTuple | None = None) -> Layout:
    """The compact layout whose strides ascend with `order`, a congruent tree; ties go left to right.

    None is column-major. Raises LayoutError (E801) for trees that are not congruent.
    """
    whole = Layout(shape)
    if order is None:
        return whole
    if not congruent(whole.shape, checked(order, "order")):
        raise malformed(f"order {text(order)} and shape {text(shape)} are not congruent", "give one number a leaf")
    extents, ranks = flatten(whole.shape), flatten(order)
    strides = [0] * len(extents)
    below = 1
    for place in sorted(range(len(extents)), key=ranks.__getitem__):
        strides[place] = below
        below *= extents[place]
    return of_tree(whole.shape, strides)


def make_layout_like(layout: Layout) -> Layout:
    """The compact layout of the same shape, whose strides ascend as those of `layout` do, as in CuTe.

    Modes of stride 0 keep it and take no room. Ties go left to right. Raises LayoutError (E801) for no layout.
    """
    modes = layout_of(layout).flat_modes
    strides = [0] * len(modes)
    below = 1
    for place in sorted(range(len(modes)), key=lambda place: modes[place][1]):
        extent, stride = modes[place]
        if stride != 0:
            strides[place] = below
            below *= extent
    return of_tree(layout.shape, strides)


def of_tree(shape: IntTuple, strides: Iterable[int]) -> Layout:
    """The layout of a shape with these strides, one per leaf."""
    rest = iter(strides)

    def fill(part: IntTuple) -> IntTuple:
        return tuple(map(fill, part)) if isinstance(part, tuple) else next(rest)

    return unchecked_layout(shape, fill(shape))
