"""Complement: what a layout lacks to fill an interval [Cecka 2026, CuTe layout representation and algebra, 3.4]."""

from __future__ import annotations

import numpy as np

from argus.core.layout.faults import TABLE_LIMIT, LayoutError, malformed, too_large
from argus.core.layout.inttuple import IntTuple, product, text
from argus.core.layout.recover import Break, recovered
from argus.core.layout.values import IntArray, Layout, of_modes, trusted


def complement(layout: Layout | int, cotarget: IntTuple | None = None) -> Layout:
    """The layout R, ascending, whose sums with images of the layout are distinct and cover [0, cotarget).

    R(0) = 0, and each further image is the smallest integer that no sum gives yet: no other R is shorter. As in
    CuTe, R goes on until the sums leave no gap, where they ever do: they are then [0, n) for the least n that is at
    least `cotarget` (its size, if it is a shape; 1 by default). Images that a layout repeats count once.
    Raises LayoutError: E805 where no such layout exists or an image is below 0, E810 if that takes too large a table.
    """
    given = Layout(layout) if isinstance(layout, int) else layout
    target = 1 if cotarget is None else product(cotarget)
    if target < 1:
        raise malformed(f"cotarget {text(cotarget or 0)} has the size {target}", "give a positive extent")
    gaps: list[tuple[int, int]] = []
    filled = 1
    for stride, extent in sorted([(d, s) for s, d in given.flat_modes if s > 1 and d != 0]):
        gap, rest = divmod(stride, filled)
        if rest or gap < 1:
            return _of_image(given, target)
        if gap > 1:
            gaps.append((gap, filled))
        filled = stride * extent
    return _filled(gaps, filled, target)


def _filled(gaps: list[tuple[int, int]], filled: int, target: int) -> Layout:
    """The modes that fill the gaps, and one that repeats the whole up to the target."""
    left = -(-target // filled)
    return of_modes([*gaps, (left, filled)] if left > 1 else gaps)


def _of_image(layout: Layout, target: int) -> Layout:
    """The same by the set of images, for modes that do not nest."""
    modes = [mode for mode in layout.flat_modes if mode[1] != 0]
    images = np.unique(trusted(tuple([s for s, _ in modes]), tuple([d for _, d in modes])).table())
    if images[0] < 0:
        raise LayoutError(
            "E805",
            f"{layout} has the image {images[0]}, a complement fills [0, n)",
            help="use strides that are not negative",
            expected=0,
            found=int(images[0]),
        )
    tiles = _alternation(images)
    return _covering(layout, images, target) if tiles is None else _filled(*tiles, target)


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
    """The translations that cover [0, target), one by one, as a layout."""
    if target + int(images[-1]) > TABLE_LIMIT:
        raise too_large(f"the complement of {layout} in {target}")
    covered = np.zeros(target + int(images[-1]), np.bool_)
    found: list[int] = []
    least = 0
    while True:
        places = images + least
        if covered[places].any():
            raise _untiled(layout, least, int(places[np.argmax(covered[places])]))
        covered[places] = True
        found.append(least)
        free = ~covered[least:target]
        if not free.any():
            break
        least += int(np.argmax(free))
    modes = recovered(np.array(found, np.int64))
    if isinstance(modes, Break):
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
