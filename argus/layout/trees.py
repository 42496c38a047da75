"""Operations that CuTe defines for int-tuples and for layouts alike, and slices of layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast, overload

from argus.core.layout import inttuple, lift
from argus.core.layout.complement import complement
from argus.core.layout.compose import composition
from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.faults import malformed, misplaced
from argus.core.layout.inttuple import Coordinate, IntTuple, crd2idx, product, text
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout, make_layout

Shaped = Layout | ComposedLayout


def is_layout(value: object) -> bool:
    return isinstance(value, Layout | ComposedLayout)


def size(value: LayoutLike | IntTuple) -> int:
    """The number of elements of a layout's domain, or of a shape."""
    return product(value) if isinstance(value, int | tuple) else value.size()


def cosize(layout: LayoutLike) -> int:
    """One more than the largest image."""
    return layout.cosize()


def rank(value: Shaped | IntTuple) -> int:
    """The number of modes."""
    return inttuple.rank(value if isinstance(value, int | tuple) else value.shape)


def depth(value: Shaped | IntTuple) -> int:
    """Levels of nesting of the shape; 0 for an int."""
    return inttuple.depth(value if isinstance(value, int | tuple) else value.shape)


@overload
def flatten(value: Layout) -> Layout: ...
@overload
def flatten(value: ComposedLayout) -> ComposedLayout: ...
@overload
def flatten(value: IntTuple) -> tuple[int, ...]: ...
def flatten(value: Shaped | IntTuple) -> Shaped | tuple[int, ...]:
    """The same function with modes of depth 0, or the leaves of an int-tuple."""
    return lift.flatten_layout(value) if isinstance(value, Layout | ComposedLayout) else inttuple.flatten(value)


@overload
def unflatten(value: Layout, profile: IntTuple | Shaped) -> Layout: ...
@overload
def unflatten(value: tuple[int, ...], profile: IntTuple | Shaped) -> IntTuple: ...
def unflatten(value: Layout | tuple[int, ...], profile: IntTuple | Shaped) -> Layout | IntTuple:
    """The leaves in the nesting of `profile`, an int-tuple or a layout; of a layout, the same function.

    Raises LayoutError (E803) unless there is a leaf for each of the profile's.
    """
    tree = profile.shape if isinstance(profile, Layout | ComposedLayout) else profile
    if isinstance(value, Layout):
        shape = inttuple.unflatten(inttuple.flatten(value.shape), tree)
        return Layout(shape, inttuple.unflatten(inttuple.flatten(value.stride), tree))
    return inttuple.unflatten(value, tree)


@overload
def mode(value: Layout, *path: int) -> Layout: ...
@overload
def mode(value: ComposedLayout, *path: int) -> ComposedLayout: ...
@overload
def mode(value: IntTuple, *path: int) -> IntTuple: ...
def mode(value: Shaped | IntTuple, *path: int) -> Shaped | IntTuple:
    """The mode at a path of mode numbers, of a layout or an int-tuple. Raises LayoutError (E803)."""
    if isinstance(value, Layout | ComposedLayout):
        return lift.mode(value, *path)
    for place in path:
        modes = value if isinstance(value, tuple) else (value,)
        if not -len(modes) <= place < len(modes):
            raise misplaced(f"{text(value)} has no mode {place}", f"give one of 0 .. {len(modes) - 1}")
        value = modes[place]
    return value


@overload
def concat(value: Layout, *others: Layout) -> Layout: ...
@overload
def concat(value: tuple[IntTuple, ...], *others: tuple[IntTuple, ...]) -> tuple[IntTuple, ...]: ...
def concat(
    value: Layout | tuple[IntTuple, ...], *others: Layout | tuple[IntTuple, ...]
) -> Layout | tuple[IntTuple, ...]:
    """The layout, or the tuple, with the modes of all arguments, one argument after the other.

    `append` adds each as one mode. Raises LayoutError (E801) for a mixture of layouts and tuples, and for composed
    layouts, whose modes are those of the inner part.
    """
    parts = (value, *others)
    layouts = [each for each in parts if isinstance(each, Layout)]
    if len(layouts) == len(parts):
        return make_layout([each for layout in layouts for each in layout])
    trees = [each for each in parts if isinstance(each, tuple)]
    if len(trees) < len(parts):
        other = next(each for each in parts if not isinstance(each, Layout) or trees)
        raise malformed(
            f"concat of {other!r} and others", "give layouts only, or tuples only; of a composed layout, `inner`"
        )
    return tuple([each for tree in trees for each in tree])


def ceil_div(value: IntTuple, tiler: Layout | IntTuple) -> IntTuple:
    """The number of tiles that cover a shape, mode by mode; for a layout, the shape of its complement in the shape."""
    return complement(tiler, value).shape if isinstance(tiler, Layout) else inttuple.ceil_div(value, tiler)


def idx2crd(idx: IntTuple, shape: IntTuple | Shaped, stride: IntTuple | None = None) -> IntTuple:
    """The coordinate in a shape, or in the shape of a layout, of an index; see `argus.core.layout.inttuple.idx2crd`."""
    return inttuple.idx2crd(idx, shape.shape if isinstance(shape, Layout | ComposedLayout) else shape, stride)


def with_shape(layout: LayoutLike, shape: IntTuple) -> LayoutLike:
    """The layout on another shape: its composition with the compact layout of that shape.

    Raises LayoutError (E804) if no layout of that shape has the images.
    """
    return composition(layout, Layout(shape))


# -- slices --------------------------------------------------------------------------------------------------


@overload
def slice_(coord: Coordinate, value: Layout) -> Layout: ...
@overload
def slice_(coord: Coordinate, value: ComposedLayout) -> ComposedLayout: ...
@overload
def slice_(coord: Coordinate, value: IntTuple) -> IntTuple: ...
def slice_(coord: Coordinate, value: Shaped | IntTuple) -> Shaped | IntTuple:
    """The modes where `coord` has None. Raises LayoutError (E803) where `coord` does not fit.

    The fixed coordinates of a composed layout move into its offset; those of a layout are dropped, see
    `slice_and_offset`.
    """
    if isinstance(value, ComposedLayout):
        return slice_and_offset(coord, value)[0]
    return _chosen(inttuple.slice_, coord, value)


@overload
def dice(coord: Coordinate, value: Layout) -> Layout: ...
@overload
def dice(coord: Coordinate, value: IntTuple) -> IntTuple: ...
def dice(coord: Coordinate, value: Layout | IntTuple) -> Layout | IntTuple:
    """The modes where `coord` has an int. Raises LayoutError (E803) where `coord` does not fit."""
    return _chosen(inttuple.dice, coord, value)


def _chosen(
    choose: Callable[[Coordinate, IntTuple], IntTuple], coord: Coordinate, value: Layout | IntTuple
) -> Layout | IntTuple:
    if isinstance(value, Layout):
        return Layout(choose(coord, value.shape), choose(coord, value.stride))
    return choose(coord, value)


@overload
def slice_and_offset(coord: Coordinate, layout: Layout) -> tuple[Layout, int]: ...
@overload
def slice_and_offset(coord: Coordinate, layout: ComposedLayout) -> tuple[ComposedLayout, int]: ...
def slice_and_offset(coord: Coordinate, layout: Shaped) -> tuple[Shaped, int]:
    """The layout of the modes where `coord` has None, and the image of the others.

    In a composed layout the others move into the offset before the outer part, and 0 remains to be added, as in CuTe.
    Raises LayoutError (E803) where `coord` does not fit.
    """
    if isinstance(layout, Layout):
        return slice_(coord, layout), crd2idx(coord, layout.shape, layout.stride)
    if isinstance(layout.inner, Swizzle):
        raise misplaced(f"{layout} has no modes: its innermost part is a swizzle", "compose it with a layout")
    selected, fixed = cast(tuple[Shaped, int], slice_and_offset(coord, layout.inner))
    return ComposedLayout(layout.outer, layout.offset + fixed, selected), 0
