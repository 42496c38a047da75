"""Complement: what a layout lacks to fill an interval [Cecka 2026, CuTe layout representation and algebra, 3.4]."""

from __future__ import annotations

import numpy as np

from argus.core.layout.faults import LayoutError, malformed
from argus.core.layout.inttuple import IntTuple, product, text
from argus.core.layout.values import Layout, of_modes, trusted


def complement(layout: Layout | int, cotarget: IntTuple | None = None) -> Layout:
    """The layout R, ascending, for which image(layout) + image(R) is [0, n), each integer in one way.

    n is the least possible that is at least `cotarget` (its size, if it is a shape) and, as in CuTe, leaves no gap
    below an image of the layout; 1 by default. Images that a layout repeats count once. R is unique; `1:0` where
    nothing lacks. Raises LayoutError (E805) where no R exists: the images go below 0, or they do not tile an interval.
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
            gaps, filled = _of_image(given)
            break
        if gap > 1:
            gaps.append((gap, filled))
        filled = stride * extent
    left = -(-target // filled)
    if left > 1:
        gaps.append((left, filled))
    return of_modes(gaps)


def _of_image(layout: Layout) -> tuple[list[tuple[int, int]], int]:
    """The same by the set of images, for modes that do not nest; the gaps and the length filled.

    A set tiles an interval only by alternation: a run [0, a), that run repeated at multiples of a, the whole again
    repeated, and so on [de Bruijn 1950, On bases for the set of integers]. So runs are read off one by one.
    """
    filtered = trusted(
        tuple([s for s, d in layout.flat_modes if d != 0]), tuple([d for _, d in layout.flat_modes if d != 0])
    )
    images = np.unique(filtered.table())
    if images[0] < 0:
        raise LayoutError(
            "E805",
            f"{layout} has the image {images[0]}, a complement fills [0, n)",
            help="use strides that are not negative",
            expected=0,
            found=int(images[0]),
        )
    unit, rest = 1, images
    gaps: list[tuple[int, int]] = []
    while len(rest) > 1:
        gap = int(rest[1])
        if gap > 1:
            if np.any(rest % gap):
                raise _untiled(layout, unit * gap, int(rest[rest % gap != 0][0]) * unit)
            gaps.append((gap, unit))
            unit, rest = unit * gap, rest // gap
            continue
        run = len(rest) if rest[-1] == len(rest) - 1 else int(np.argmax(rest != np.arange(len(rest))))
        heads = rest[::run]
        whole = len(rest) % run == 0 and np.array_equal(rest, (heads[:, None] + np.arange(run)).ravel())
        if not whole or np.any(heads % run):
            raise _untiled(layout, unit * run, int(rest[run]) * unit)
        unit, rest = unit * run, heads // run
    return gaps, unit


def _untiled(layout: Layout, period: int, image: int) -> LayoutError:
    return LayoutError(
        "E805",
        f"{layout} has no complement: its images do not tile an interval, "
        f"since {image} breaks what the images below it repeat every {period}",
        help="use strides of which each is a multiple of stride times extent of the one below it",
        index=int(np.flatnonzero(layout.table() == image)[0]),
        found=image,
    )
