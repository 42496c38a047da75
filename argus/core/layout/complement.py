"""The complement of a layout in an interval [Cecka 2026, CuTe layout representation and algebra, section 3.4]."""

from __future__ import annotations

from operator import itemgetter

import numpy as np
import numpy.typing as npt

from argus.core.layout.faults import TABLE_LIMIT, LayoutError, malformed, too_large
from argus.core.layout.images.recover import Mismatch, recover_modes
from argus.core.layout.inttuple import IntTuple, checked, product, text
from argus.core.layout.values import IntArray, Layout, layout_of, of_modes

BoolArray = npt.NDArray[np.bool_]
_WINDOW = 1 << 12


def complement(layout: Layout | int, cotarget: IntTuple | None = None) -> Layout:
    """The ascending layout R for which the sums layout(i) + R(j) are distinct and cover [0, cotarget).

    R(0) = 0, and each further image of R is the smallest integer that no sum has covered yet, until R is a layout. As
    in CuTe, R continues until the sums have no gap, if that ever happens: they are then [0, n) for the least n that is
    at least `cotarget` (its size, if it is a shape; 1 by default). Repeated images of the layout count once.
    Raises LayoutError: E805 if no such layout exists or an image is negative, E810 if deciding it needs too large a
    table.
    """
    given, target = layout_of(layout), cotarget_size(cotarget)
    tiles = _nested_gaps(
        sorted([mode for mode in given.flat_modes if mode[0] > 1 and mode[1] != 0], key=itemgetter(1, 0))
    )
    return _complement_of_images(given, target) if tiles is None else _fill_gaps(*tiles, target)


def cotarget_size(cotarget: IntTuple | None) -> int:
    """The size of a cotarget, 1 by default. Raises LayoutError (E801) for a size that is not positive."""
    target = 1 if cotarget is None else product(checked(cotarget, "cotarget"))
    if target < 1:
        raise malformed(f"cotarget {text(cotarget or 0)} has the size {target}", "give a positive extent")
    return target


def _nested_gaps(modes: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], int] | None:
    """(extent, stride) of each gap between modes, by ascending stride, and the length that modes and gaps fill
    together; None if the strides do not nest.
    """
    gaps: list[tuple[int, int]] = []
    filled = 1
    for extent, stride in modes:
        gap, rest = divmod(stride, filled)
        if rest or gap < 1:
            return None
        if gap > 1:
            gaps.append((gap, filled))
        filled = stride * extent
    return gaps, filled


def _fill_gaps(gaps: list[tuple[int, int]], filled: int, target: int) -> Layout:
    """The layout that fills the gaps and then repeats the filled interval up to the target."""
    left = -(-target // filled)
    return of_modes([*gaps, (left, filled)] if left > 1 else gaps)


def _complement_of_images(layout: Layout, target: int) -> Layout:
    """`complement` of a layout whose strides do not nest, computed from its set of images."""
    modes = _merge_runs(layout)
    if modes and modes[0][1] < 0:
        least = sum((extent - 1) * stride for extent, stride in modes if stride < 0)
        raise LayoutError(
            "E805",
            f"{layout} has the image {least}, a complement fills [0, n)",
            help="use strides that are not negative",
            expected=0,
            found=least,
        )
    tiles = _nested_gaps(modes)
    if tiles is None:
        images = np.unique(of_modes(modes).table())
        tiles = _tiling_gaps(images)
        if tiles is None:
            return _greedy_complement(layout, images, target)
    return _fill_gaps(*tiles, target)


def _merge_runs(layout: Layout) -> list[tuple[int, int]]:
    """Modes with the same set of images, by ascending stride; merges modes whose images overlap or adjoin."""
    runs: list[tuple[int, int]] = []
    for stride, extent in sorted([(d, s) for s, d in layout.flat_modes if s > 1 and d != 0]):
        length, step = runs[-1] if runs else (0, 1)
        if stride % step == 0 and 0 < stride // step <= length:
            runs[-1] = (length + stride // step * (extent - 1), step)
        else:
            runs.append((extent, stride))
    return runs


def _tiling_gaps(images: IntArray) -> tuple[list[tuple[int, int]], int] | None:
    """As `_nested_gaps`, for a set of images; None if the set does not tile an interval.

    A set tiles an interval only if it is a run [0, a), repeated at multiples of a, the result repeated again, and so on
    [de Bruijn 1950, On bases for the set of integers]; the loop below reads off one level at a time.
    """
    unit, rest = 1, images
    gaps: list[tuple[int, int]] = []
    while len(rest) > 1:
        gap = int(rest[1])
        if gap > 1:
            if np.any(rest % gap):
                return None
            gaps.append((gap, unit))
            unit, rest = unit * gap, rest // gap
            continue
        run = len(rest) if rest[-1] == len(rest) - 1 else int(np.argmax(rest != np.arange(len(rest))))
        heads = rest[::run]
        whole = len(rest) % run == 0 and np.array_equal(rest, (heads[:, None] + np.arange(run)).ravel())
        if not whole or np.any(heads % run):
            return None
        unit, rest = unit * run, heads // run
    return gaps, unit


def _greedy_complement(layout: Layout, images: IntArray, target: int) -> Layout:
    """The fewest greedy translations that cover [0, target) and are the images of a layout.

    Translations of a set that tiles no interval eventually overlap; the window grows until that or the target.
    """
    window = _WINDOW
    found, least, covered = _greedy_translations(layout, images, min(window, target))
    while window < target:
        window *= 8
        found, least, covered = _greedy_translations(layout, images, min(window, target))
    modes = recover_modes(np.array(found, np.int64))
    # Completing the last mode of the layout at most doubles the number of translations.
    for _ in range(len(found)):
        places = images + least
        if not isinstance(modes, Mismatch) or int(places[-1]) >= len(covered) or covered[places].any():
            break
        covered[places] = True
        found.append(least)
        least += int(np.argmin(covered[least:]))
        modes = recover_modes(np.array(found, np.int64))
    if isinstance(modes, Mismatch):
        raise LayoutError(
            "E805",
            f"{layout} has a complement in {target}, but it is no layout: its image at {modes.index} is {modes.image}, "
            f"and a layout that agrees before is {modes.forced} there",
            help="ask for a cotarget that the layout tiles",
            index=modes.index,
            expected=modes.image,
            found=modes.forced,
        )
    return of_modes(modes)


def _greedy_translations(layout: Layout, images: IntArray, target: int) -> tuple[list[int], int, BoolArray]:
    """The greedy translations that cover [0, target), the next uncovered integer, and the covered integers."""
    length = 3 * (target + int(images[-1]))
    if length > TABLE_LIMIT:
        raise too_large(f"the complement of {layout} in {target}")
    covered = np.zeros(length + 1, np.bool_)
    found: list[int] = []
    least = 0
    while least < target:
        places = images + least
        if covered[places].any():
            raise _overlap_error(layout, least, int(places[np.argmax(covered[places])]))
        covered[places] = True
        found.append(least)
        least += int(np.argmin(covered[least:]))
    return found, least, covered


def _overlap_error(layout: Layout, least: int, value: int) -> LayoutError:
    images = layout.table()
    index = int(np.flatnonzero(images == value - least)[0])
    return LayoutError(
        "E805",
        f"{layout} has no complement: to cover {least} it must contain {least}, and {least} + {value - least} = "
        f"{value} is covered already",
        help="use nested strides: each a multiple of the next smaller stride times its extent",
        index=index,
        found=value,
    )
