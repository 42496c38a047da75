"""Predicates on layouts, swizzles and composed layouts; a false answer carries the smallest counterexample.

Each decides from modes or bits where these suffice, for any size of the domain, and else with a table; it raises
LayoutError (E810) if the table would be too large.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argus.core.layout.coalesce import coalesce_modes
from argus.core.layout.compose import Tiler, composition
from argus.core.layout.composed import ComposedLayout, LayoutLike
from argus.core.layout.f2.linear import columns_of
from argus.core.layout.faults import TABLE_LIMIT, LayoutError, too_large
from argus.core.layout.images.strides import (
    UndecidedError,
    first_collision,
    first_gap,
    first_outside,
    lowest,
    share_only_zero,
    strides_nest,
)
from argus.core.layout.images.tables import (
    check_fits,
    first_missed,
    first_repeated,
    first_value_gap,
    first_value_outside,
    tabulate,
)
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import IntArray, Layout, make_layout
from argus.core.layout.witness import Answer, Collision, Disagreement, Missed, Outside, Refusal, Shared, Sizes

_CHUNK = 1 << 16


# -- one function --------------------------------------------------------------------------------------------


def is_injective(f: LayoutLike) -> Answer:
    """Whether no two indices of the domain have the same image.

    Witness: a Collision, whose second index is the smallest with the image of an earlier index.
    """
    pair = _collision(f)
    if pair is None:
        return Answer(True, f"the {f.size()} images of {f} are distinct")
    image = f(pair[0])
    return Answer(False, f"{f} maps both {pair[0]} and {pair[1]} to {image}", Collision(*pair, image))


def is_surjective(f: LayoutLike, onto: int) -> Answer:
    """Whether the images are exactly the integers of [0, onto).

    Witness: Outside with the smallest index whose image is not in the interval; if there is none, Missed.
    """
    if _images_fill(f, onto):
        return Answer(True, f"{f} is onto [0, {onto})")
    table = None if isinstance(f, Layout) else tabulate(f)
    index = first_outside(f.flat_modes, onto) if isinstance(f, Layout) else first_value_outside(_not_none(table), onto)
    if index is not None:
        image = f(index)
        return Answer(False, f"{f} maps {index} to {image}, outside [0, {onto})", Outside(index, image))
    value = _missed_by_modes(f, onto) if isinstance(f, Layout) else first_missed(_not_none(table), onto)
    if value is not None:
        return Answer(False, f"no index of {f} has the image {value}", Missed(value))
    return Answer(True, f"{f} is onto [0, {onto})")


def is_bijective(f: LayoutLike, onto: int | None = None) -> Answer:
    """Whether each integer of [0, onto), by default [0, size), is the image of exactly one index.

    Witness: that of `is_surjective`, else that of `is_injective`.
    """
    count = f.size() if onto is None else onto
    covers = is_surjective(f, count)
    if not covers:
        return covers
    if f.size() == count:
        return Answer(True, f"{f} maps {count} elements onto [0, {count}), each once")
    return is_injective(f)


def is_compact(f: LayoutLike) -> Answer:
    """Whether f is a bijection onto [0, size), CuTe's compact. Witness: that of `is_bijective`."""
    return is_bijective(f)


def is_contiguous(f: LayoutLike) -> Answer:
    """Whether the images are an interval of integers; repetitions are allowed. Witness: Missed."""
    if isinstance(f, Layout):
        value = first_gap(f.flat_modes)
    elif isinstance(f, Swizzle) or _images_fill(f, f.size()):
        value = None
    else:
        value = first_value_gap(tabulate(f))
    if value is None:
        return Answer(True, f"the images of {f} are an interval")
    return Answer(False, f"no index of {f} has the image {value}, though smaller and larger ones occur", Missed(value))


def _collision(f: LayoutLike) -> tuple[int, int] | None:
    if isinstance(f, Swizzle):
        return None
    if isinstance(f, ComposedLayout):
        # Swizzles and offsets are bijections of the integers: the collisions are those of the inner part.
        return _collision(f.inner) if isinstance(f.outer, Swizzle) else first_repeated(tabulate(f))
    try:
        return first_collision(f.flat_modes)
    except UndecidedError:
        return first_repeated(tabulate(f))


def _images_fill(f: LayoutLike, onto: int) -> bool:
    """Whether the structure of f shows that its images are [0, onto). A swizzle permutes each aligned period."""
    if isinstance(f, Layout):
        return lowest(f.flat_modes) == 0 and f.cosize() == onto and first_gap(f.flat_modes) is None
    if isinstance(f, Swizzle):
        return f.period == onto
    return f.offset == 0 and isinstance(f.outer, Swizzle) and onto % f.outer.period == 0 and _images_fill(f.inner, onto)


def _missed_by_modes(f: Layout, onto: int) -> int | None:
    """The smallest value of [0, onto) that is not an image; all images must be in [0, onto), so 0 is one."""
    value = first_gap(f.flat_modes)
    return value if value is not None else (f.cosize() if f.cosize() < onto else None)


def _not_none(table: IntArray | None) -> IntArray:
    assert table is not None
    return table


# -- two functions -------------------------------------------------------------------------------------------


def functionally_equal(f: LayoutLike, g: LayoutLike) -> Answer:
    """Whether f and g have the same size and the same image at each index.

    Two layouts are compared by their coalesced modes, which are unique. Witness: Sizes, or a Disagreement.
    """
    if f.size() != g.size():
        return Answer(False, f"{f} has {f.size()} elements, {g} has {g.size()}", Sizes(f.size(), g.size()))
    if isinstance(f, Layout) and isinstance(g, Layout):
        index = _first_differing_mode(coalesce_modes(f.flat_modes), coalesce_modes(g.flat_modes))
    else:
        index = None if f == g else _first_difference(f, g)
    if index is None:
        return Answer(True, f"{f} and {g} agree at each of {f.size()} indices")
    left, right = f(index), g(index)
    return Answer(False, f"at {index} {f} is {left}, {g} is {right}", Disagreement(index, left, right))


def is_admissible(a: LayoutLike, b: LayoutLike | Tiler) -> Answer:
    """Whether `composition(a, b)` has an exact result. Witness: a Refusal."""
    try:
        found = composition(a, b)
    except LayoutError as fault:
        # Undecided is not false.
        if fault.code == "E810":
            raise
        return Answer(False, fault.diagnostic.message, Refusal(fault.code, fault.index, fault.expected, fault.found))
    return Answer(True, f"the composition is {found}")


def is_disjoint(f: LayoutLike, g: LayoutLike) -> Answer:
    """Whether no value but 0 is an image of both. Witness: Shared."""
    if isinstance(f, Layout) and isinstance(g, Layout):
        moving = tuple(mode for mode in f.flat_modes + g.flat_modes if mode[1] != 0)
        if strides_nest(moving):
            # Nested strides make all sums distinct, so image(i) = image(j) only for 0 = 0.
            return Answer(True, f"the strides of {f} and {g} nest: their images share 0 alone")
        if share_only_zero(f.flat_modes, g.flat_modes):
            return Answer(True, f"no value but 0 is in the ranges of {f} and {g} and a multiple of what divides each")
    left, right = tabulate(f), tabulate(g)
    both = (left != 0) & np.isin(left, right)
    if not both.any():
        return Answer(True, f"the images of {f} and {g} share no value but 0")
    i = int(both.argmax())
    value = int(left[i])
    j = int((right == value).argmax())
    return Answer(False, f"{value} is the image of {i} in {f} and of {j} in {g}", Shared(i, j, value))


def are_complementary(a: LayoutLike, r: LayoutLike, n: int) -> Answer:
    """Whether each integer of [0, n) is a(i) + r(j) for exactly one i below size(a) and one j below size(r).

    Witness: that of `is_bijective`, where the index i + size(a) * j stands for the pair (i, j).
    """
    if isinstance(a, Layout) and isinstance(r, Layout):
        return is_bijective(make_layout(a, r), n)
    size = a.size() * r.size()
    if size > TABLE_LIMIT:
        raise too_large(f"({a}, {r}) has {size} elements")
    sums = (tabulate(r)[:, None] + tabulate(a)[None, :]).reshape(-1)
    what = f"({a}, {r})"
    index = first_value_outside(sums, n)
    if index is not None:
        image = int(sums[index])
        return Answer(False, f"{what} maps {index} to {image}, outside [0, {n})", Outside(index, image))
    value = first_missed(sums, n)
    if value is not None:
        return Answer(False, f"no index of {what} has the image {value}", Missed(value))
    pair = first_repeated(sums)
    if pair is not None:
        image = int(sums[pair[0]])
        return Answer(False, f"{what} maps both {pair[0]} and {pair[1]} to {image}", Collision(*pair, image))
    return Answer(True, f"{what} maps {size} elements onto [0, {n}), each once")


def _first_differing_mode(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> int | None:
    """The smallest index at which coalesced layouts of one size differ; None if they have the same modes.

    If strides differ, it is the first element of that mode; if extents differ, it is the end of the shorter mode: the
    longer mode continues there, and the shorter does not, since coalescing would have merged it with its successor.
    """
    below = 1
    for (extent, stride), (other, step) in zip(a, b, strict=False):
        if stride != step:
            return below
        if extent != other:
            return below * min(extent, other)
        below *= extent
    return None


def _first_difference(f: LayoutLike, g: LayoutLike) -> int | None:
    """The first index at which f and g differ: by bit images if both are linear, else by tables, in chunks."""
    a, b = _columns_if_linear(f), _columns_if_linear(g)
    if a is not None and b is not None:
        # Linear functions agree on a subspace: the smallest index outside it is a power of two.
        return next((1 << bit for bit in range(len(a)) if a[bit] != b[bit]), None)
    check_fits(f)
    check_fits(g)
    for begin, end in _chunks(f.size()):
        indices = np.arange(begin, end, dtype=np.int64)
        wrong = f.images(indices) != g.images(indices)
        if wrong.any():
            return begin + int(wrong.argmax())
    return None


def _chunks(size: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, size, _CHUNK):
        if begin >= TABLE_LIMIT:
            raise too_large(f"a comparison of {size} elements")
        yield begin, min(size, begin + _CHUNK)


def _columns_if_linear(f: LayoutLike) -> tuple[int, ...] | None:
    try:
        return columns_of(f)
    except LayoutError:
        return None
