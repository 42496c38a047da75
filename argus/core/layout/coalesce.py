"""Operations on a layout's modes: coalesce, filter, squeeze, sort, flatten, append, concat, replace, group, select."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TypeVar, cast

from argus.core.layout.faults import misplaced
from argus.core.layout.inttuple import Coordinate, IntTuple
from argus.core.layout.values import Layout, layout_of, make_layout, of_modes, unchecked_layout

Profile = Coordinate
Part = TypeVar("Part")


def coalesce_modes(modes: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    """The modes without extents of 1; merges neighbours where one continues the other."""
    merged: list[tuple[int, int]] = []
    extent, stride = 1, 0
    for each, step in modes:
        if each == 1:
            continue
        if extent == 1:
            extent, stride = each, step
        elif extent * stride == step:
            extent *= each
        else:
            merged.append((extent, stride))
            extent, stride = each, step
    if extent != 1:
        merged.append((extent, stride))
    return merged


def coalesce(layout: Layout, profile: Profile = None) -> Layout:
    """The flat layout of fewest modes with the same size and the same image at each index below it.

    It is unique: two layouts are equal as functions if and only if they coalesce to the same one.
    With a tuple as profile, each mode of the profile is coalesced by itself and later modes are unchanged.
    Raises LayoutError (E803) for a profile that does not fit.
    """
    if isinstance(profile, tuple):
        return by_mode(coalesce, layout, profile)
    return of_modes(coalesce_modes(layout.flat_modes))


def filter(layout: Layout, profile: Profile = None) -> Layout:  # noqa: A001 reason: CuTe's name
    """`coalesce` without modes of stride 0: the same set of images, with fewer repetitions. Raises like `coalesce`."""
    if isinstance(profile, tuple):
        return by_mode(filter, layout_of(layout), profile)
    return of_modes(coalesce_modes(tuple([mode for mode in layout_of(layout).flat_modes if mode[1] != 0])))


def filter_zeros(layout: Layout) -> Layout:
    """The same layout with extent 1 wherever the stride is 0."""

    def shrink(extent: IntTuple, stride: IntTuple) -> IntTuple:
        if isinstance(extent, tuple):
            return tuple(map(shrink, extent, cast(tuple[IntTuple, ...], stride)))
        return 1 if stride == 0 else extent

    given = layout_of(layout)
    return unchecked_layout(shrink(given.shape, given.stride), given.stride)


def squeeze(layout: Layout) -> Layout:
    """The same function without modes of extent 1, at any depth; a single mode that is left stands by itself.

    `1:0` if none is left. A mode of extent 1 counts only beyond the size, where the last mode left now extends.
    """
    if not any(extent == 1 for extent, _ in layout.flat_modes):
        return layout
    kept = _squeezed(layout.shape, layout.stride)
    return unchecked_layout(1, 0) if kept is None else unchecked_layout(*kept)


def _squeezed(extent: IntTuple, stride: IntTuple) -> tuple[IntTuple, IntTuple] | None:
    if not isinstance(extent, tuple):
        return None if extent == 1 else (extent, stride)
    pairs = map(_squeezed, extent, cast(tuple[IntTuple, ...], stride))
    kept = [each for each in pairs if each is not None]
    if len(kept) < 2:
        return kept[0] if kept else None
    return tuple([each for each, _ in kept]), tuple([each for _, each in kept])


def sort(layout: Layout) -> Layout:
    """The leaves as flat modes in ascending order of stride, then of extent: the same multiset of images."""
    if not isinstance(layout.shape, tuple):
        return layout
    modes = sorted(layout.flat_modes, key=itemgetter(1, 0))
    return unchecked_layout(tuple([extent for extent, _ in modes]), tuple([stride for _, stride in modes]))


def flatten_layout(layout: Layout) -> Layout:
    """The same function with modes of depth 0; a layout of depth 0 is unchanged."""
    if not isinstance(layout.shape, tuple):
        return layout
    modes = layout.flat_modes
    return unchecked_layout(tuple([extent for extent, _ in modes]), tuple([stride for _, stride in modes]))


def by_mode(operation: Callable[[Layout, Part], Layout], layout: Layout, profile: tuple[Part, ...]) -> Layout:
    """Apply the operation to each mode in the profile; later modes are unchanged. Raises LayoutError (E803)."""
    if len(layout) < len(profile):
        raise misplaced(
            f"a profile or tiler of {len(profile)} modes for {layout}, which has {len(layout)}",
            f"give at most {len(layout)} modes",
        )
    modes = list(layout)
    return make_layout([operation(*pair) for pair in zip(modes, profile, strict=False)] + modes[len(profile) :])


def append(layout: Layout, mode: Layout | None = None, up_to_rank: int | None = None) -> Layout:
    """The layout with a mode appended (`1:0` by default), repeatedly up to the rank `up_to_rank` if given."""
    return make_layout(list(layout) + _padding(layout, mode, up_to_rank))


def prepend(layout: Layout, mode: Layout | None = None, up_to_rank: int | None = None) -> Layout:
    """Like `append`, at the front."""
    return make_layout(_padding(layout, mode, up_to_rank) + list(layout))


def concat(layout: Layout, *others: Layout) -> Layout:
    """The layout with the modes of all layouts, one layout after the other; `append` adds each as one mode."""
    return make_layout([each for part in (layout, *others) for each in part])


def _padding(layout: Layout, mode: Layout | None, up_to_rank: int | None) -> list[Layout]:
    missing = 1 if up_to_rank is None else up_to_rank - len(layout)
    return [unchecked_layout(1, 0) if mode is None else mode] * max(0, missing)


def replace(layout: Layout, place: int, mode: Layout) -> Layout:
    """The layout with another mode at `place`. Raises LayoutError (E803)."""
    modes = list(layout)
    if not -len(modes) <= place < len(modes):
        raise misplaced(f"{layout} has no mode {place}: its rank is {len(modes)}", f"give one of 0 .. {len(modes) - 1}")
    modes[place] = mode
    return make_layout(modes)


def group(layout: Layout, begin: int = 0, end: int | None = None) -> Layout:
    """The same function with modes begin .. end-1 as one mode. Raises LayoutError (E803) for an empty range."""
    modes = list(layout)
    last = len(modes) if end is None else end
    if not 0 <= begin < last <= len(modes):
        raise misplaced(f"{layout} has no modes {begin} .. {last - 1}", f"give a range within 0 .. {len(modes)}")
    return make_layout([*modes[:begin], make_layout(modes[begin:last]), *modes[last:]])


def select(layout: Layout, *places: int) -> Layout:
    """The layout of these modes, in this order. Raises LayoutError (E803)."""
    return make_layout([layout[place] for place in places])


def mode(layout: Layout, *path: int) -> Layout:
    """The mode at a path of mode numbers. Raises LayoutError (E803)."""
    for place in path:
        layout = layout[place]
    return layout
