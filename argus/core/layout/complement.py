"""Complement: what a layout lacks to fill an interval [Cecka 2026, CuTe layout representation and algebra, 3.4]."""

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
    """The layout R, ascending, whose sums with images of the layout are distinct and cover [0, cotarget).

    R(0) = 0, and each further image is the smallest integer that no sum gives yet, until R is a layout. As in CuTe, R
    goes on until the sums leave no gap, where they ever do: they are then [0, n) for the least n that is at least
    `cotarget` (its size, if it is a shape; 1 by default). Images that a layout repeats count once.
    Raises LayoutError: E805 where no such layout exists or an image is below 0, E810 if that takes too large a table.
    """
    given = layout_of(layout)
    target = 1 if cotarget is None else product(checked(cotarget, "cotarget"))
    if target < 1:
        raise malformed(f"cotarget {text(cotarget or 0)} has the size {target}", "give a positive extent")
    tiles = _nested(sorted([mode for mode in given.flat_modes if mode[0] > 1 and mode[1] != 0], key=itemgetter(1, 0)))
    return _of_image(given, target) if tiles is None else _filled(*tiles, target)


def _nested(modes: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], int] | None:
    """The gaps between modes, ascending by stride, and the length that both fill; None if they do not nest."""
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


def _filled(gaps: list[tuple[int, int]], filled: int, target: int) -> Layout:
    """The modes that fill the gaps, and one that repeats the whole up to the target."""
    left = -(-target // filled)
    return of_modes([*gaps, (left, filled)] if left > 1 else gaps)


def _of_image(layout: Layout, target: int) -> Layout:
    """The same by the set of images, for modes that do not nest."""
    modes = _runs(layout)
    if modes and modes[0][1] < 0:
        least = sum((extent - 1) * stride for extent, stride in modes if stride < 0)
        raise LayoutError(
            "E805",
            f"{layout} has the image {least}, a complement fills [0, n)",
            help="use strides that are not negative",
            expected=0,
            found=least,
        )
    tiles = _nested(modes)
    if tiles is None:
        images = np.unique(of_modes(modes).table())
        tiles = _alternation(images)
        if tiles is None:
            return _covering(layout, images, target)
    return _filled(*tiles, target)


def _runs(layout: Layout) -> list[tuple[int, int]]:
    """Modes, ascending by stride, with the same set of images: a mode that steps within another lengthens it."""
    runs: list[tuple[int, int]] = []
    for stride, extent in sorted([(d, s) for s, d in layout.flat_modes if s > 1 and d != 0]):
        length, step = runs[-1] if runs else (0, 1)
        if stride % step == 0 and 0 < stride // step <= length:
            runs[-1] = (length + stride // step * (extent - 1), step)
        else:
            runs.append((extent, stride))
    return runs


def _alternation(images: IntArray) -> tuple[list[tuple[int, int]], int] | None:
    """The gaps of a set that tiles an interval, and the length that it fills with them; None for another set.

    It tiles only by alternation: a run [0, a), that run repeated at multiples of a, the whole again repeated, and so
    on [de Bruijn 1950, On bases for the set of integers]. So runs are read off one by one.
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


def _covering(layout: Layout, images: IntArray, target: int) -> Layout:
    """The translations that cover [0, target), as a layout: as few as make one.

    A set that does not tile an interval meets itself after some translations, so a growing window finds out.
    """
    window = _WINDOW
    found, least, covered = _translations(layout, images, min(window, target))
    while window < target:
        window *= 8
        found, least, covered = _translations(layout, images, min(window, target))
    modes = recover_modes(np.array(found, np.int64))
    # A layout that repeats the last mode in full has less than twice as many elements.
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


def _translations(layout: Layout, images: IntArray, target: int) -> tuple[list[int], int, BoolArray]:
    """The translations that cover [0, target), one by one, the next integer that is free, and what they cover."""
    length = 3 * (target + int(images[-1]))
    if length > TABLE_LIMIT:
        raise too_large(f"the complement of {layout} in {target}")
    covered = np.zeros(length + 1, np.bool_)
    found: list[int] = []
    least = 0
    while least < target:
        places = images + least
        if covered[places].any():
            raise _untiled(layout, least, int(places[np.argmax(covered[places])]))
        covered[places] = True
        found.append(least)
        least += int(np.argmin(covered[least:]))
    return found, least, covered


def _untiled(layout: Layout, least: int, value: int) -> LayoutError:
    images = layout.table()
    index = int(np.flatnonzero(images == value - least)[0])
    return LayoutError(
        "E805",
        f"{layout} has no complement: to cover {least} it must contain {least}, and {least} + {value - least} = "
        f"{value} is covered already",
        help="use strides of which each is a multiple of stride times extent of the one below it",
        index=index,
        found=value,
    )
