"""`ComposedLayout`: `outer o offset o inner`, such as a swizzled layout, where no single layout suffices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union, cast, overload

from attrs import frozen

from argus.core import algebra
from argus.core.index import Index
from argus.core.layout.faults import malformed, misplaced, too_large
from argus.core.layout.inttuple import Coordinate, IntTuple, has_none, integer, text
from argus.core.layout.pictures.grid import MAX_CELLS, as_html, index_grid
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import IntArray, Integers, Layout

LayoutLike = Union[Layout, Swizzle, "ComposedLayout"]
"""The operands and results of composition and inverse: functions of an index."""


@frozen
class ComposedLayout:
    """The function `i -> outer(offset + inner(i))`; its shape is that of `inner`.

    Either part may be a layout, a swizzle or a composed layout. A swizzle as `inner` has the size of one period.
    """

    outer: LayoutLike
    offset: int
    inner: LayoutLike

    def __attrs_post_init__(self) -> None:
        for part in (self.outer, self.inner):
            if not isinstance(part, Layout | Swizzle | ComposedLayout):  # pyright: ignore[reportUnnecessaryIsInstance] reason: a user may pass anything
                raise malformed(f"expected a layout or a swizzle, found {part!r}", "compose layouts and swizzles")
        if self.offset.__class__ is not int:
            object.__setattr__(self, "offset", integer(self.offset, "an offset"))

    @property
    def shape(self) -> IntTuple:
        return self.inner.size() if isinstance(self.inner, Swizzle) else self.inner.shape

    def size(self) -> int:
        """The number of elements of the domain."""
        return self.inner.size()

    def cosize(self) -> int:
        """One more than the largest image. Raises LayoutError (E810) if the table would be too large."""
        return 1 + max(0, int(self.table().max()))

    def table(self) -> IntArray:
        """The images of 0 .. size-1. Raises LayoutError (E810) above TABLE_LIMIT elements."""
        return self.outer.images(self._add_offset(self.inner.table()))

    def images(self, indices: Integers) -> IntArray:
        """The image of each index, like a call."""
        return self.outer.images(self._add_offset(self.inner.images(indices)))

    def _add_offset(self, images: IntArray) -> IntArray:
        if abs(self.offset) >> 62:
            raise too_large(f"the offset {self.offset}")
        return images + self.offset

    @overload
    def __call__(self, *coord: IntTuple) -> int: ...  # pyright: ignore[reportOverlappingOverload] reason: None slices
    @overload
    def __call__(self, *coord: Coordinate) -> ComposedLayout: ...
    def __call__(self, *coord: Coordinate) -> int | ComposedLayout:
        if has_none(coord):
            return self._slice(coord)
        inner = self.inner
        if not isinstance(inner, Swizzle):
            return self.outer(self.offset + inner(*cast(tuple[IntTuple, ...], coord)))
        if len(coord) != 1:
            raise misplaced(f"{self} has one mode, the coordinate {text(coord)} has {len(coord)}", "give an index")
        return self.outer(self.offset + inner(integer(coord[0], "an index")))

    def _slice(self, coord: tuple[Coordinate, ...]) -> ComposedLayout:
        """The sublayout of the modes at None; the fixed coordinates move into the offset."""
        inner = self.inner
        if isinstance(inner, Swizzle):
            return self
        selected = inner(*coord)
        if isinstance(selected, ComposedLayout):
            return ComposedLayout(self.outer, self.offset, selected)
        fixed = inner(*cast(tuple[IntTuple, ...], _none_to_zero(coord)))
        return ComposedLayout(self.outer, self.offset + fixed, selected)

    def at(self, index: Index) -> Index:
        """The image of a symbolic index within the size."""
        return self.outer.at(algebra.add(self.inner.at(index), self.offset))

    def __len__(self) -> int:
        """The rank: the number of modes."""
        return 1 if isinstance(self.inner, Swizzle) else len(self.inner)

    def __iter__(self) -> Iterator[ComposedLayout]:
        """The modes, each with the offset."""
        return iter([self[place] for place in range(len(self))])

    def __getitem__(self, mode: int | slice) -> ComposedLayout:
        if not isinstance(self.inner, Swizzle):
            return ComposedLayout(self.outer, self.offset, self.inner[mode])
        if mode not in (0, -1):
            raise misplaced(f"{self} has no mode {mode}: its rank is 1", "give 0")
        return self

    def svg(self) -> str:
        """The grid of its images as an SVG document. Raises LayoutError (E813) above 4096 elements."""
        return index_grid(self).svg()

    def _repr_svg_(self) -> str | None:
        return self.svg() if self.size() <= MAX_CELLS else None

    def _repr_html_(self) -> str:
        return as_html(self)

    def __str__(self) -> str:
        return f"{_bracket(self.outer)} o {self.offset} o {_bracket(self.inner)}"


def _none_to_zero(coord: Coordinate) -> Coordinate:
    return tuple(map(_none_to_zero, coord)) if isinstance(coord, tuple) else coord or 0


def _bracket(part: LayoutLike) -> str:
    return f"[{part}]" if isinstance(part, ComposedLayout) else str(part)
