"""What operations on layouts must give, by tables alone: the oracles of the laws and of the differential mode.

Nothing here uses the algebra that it judges. Layouts are flat modes, ((extent, stride), ...), or trees of shape and
stride; functions are tables. A table with first image 0 is a layout's if and only if cutting it at its first break,
again and again, gives the modes back: the coalesced layout of a function is unique.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt, prod
from typing import cast

import numpy as np
import numpy.typing as npt

from argus.core.layout.inttuple import IntTuple

IntArray = npt.NDArray[np.int64]
Modes = tuple[tuple[int, int], ...]

CHAINS = 200_000
"""Chains of extents after which the search for a layout through points is undecided."""


def flat(shape: IntTuple, stride: IntTuple) -> Modes:
    """(extent, stride) of every leaf, first fastest."""
    if not isinstance(shape, tuple):
        return ((shape, cast(int, stride)),)
    found: list[tuple[int, int]] = []
    for pair in zip(shape, cast(tuple[IntTuple, ...], stride), strict=True):
        found += flat(*pair)
    return tuple(found)


def count(modes: Modes) -> int:
    return prod([extent for extent, _ in modes])


def table(modes: Modes) -> IntArray:
    """The images of 0 .. size-1."""
    images = np.zeros(1, np.int64)
    for extent, stride in modes:
        images = (np.arange(extent, dtype=np.int64)[:, None] * stride + images).ravel()
    return images


def images_of(modes: Modes, indices: IntArray) -> IntArray:
    """The images of any integers: the last mode goes on without end."""
    total = np.zeros(indices.shape, np.int64)
    rest = indices
    for place, (extent, stride) in enumerate(modes):
        if place == len(modes) - 1:
            return total + rest * stride
        total += rest % extent * stride
        rest = rest // extent
    return total


def recovered(images: Sequence[int]) -> Modes | None:
    """The coalesced modes of the only layout with this table, or None if no layout has it."""
    rest = list(images)
    if rest[0] != 0:
        return None
    modes: list[tuple[int, int]] = []
    while len(rest) > 1:
        step = rest[1]
        run = next((i for i, image in enumerate(rest) if image != i * step), len(rest))
        if len(rest) % run:
            return None
        modes.append((run, step))
        rest = rest[::run]
    return tuple(modes) if table(tuple(modes)).tolist() == list(images) else None


# -- operations ----------------------------------------------------------------------------------------------


def composable(a: Modes, b: Modes) -> bool:
    """Whether a layout whose shape refines that of `b`, leaf by leaf, has the images a(b(i))."""
    total = np.zeros(1, np.int64)
    for extent, stride in b:
        along = images_of(a, np.arange(extent, dtype=np.int64) * stride)
        if recovered(along.tolist()) is None:
            return False
        total = (along[:, None] + total).ravel()
    return np.array_equal(total, images_of(a, table(b)))


def completed(images: Sequence[int] | IntArray, cotarget: int) -> Modes | None:
    """The ascending R whose sums with the images are distinct, cover [0, cotarget), and leave no gap if they can.

    Greedy: the least integer that is not yet covered must itself be in R. A set that tiles any interval tiles one of
    at most twice its largest element [de Bruijn 1950, On bases for the set of integers], and then its multiples.
    Another set covers until it meets itself; of its covers the first that is a layout counts, and that has less than
    twice as many elements as the first cover.
    """
    tile = np.unique(np.asarray(images, np.int64))
    last = int(tile[-1])
    if tile[0] < 0:
        return None
    covered = np.zeros(4 * (last + cotarget) + 2, np.bool_)
    chosen: list[int] = []
    covers: list[list[int]] = []
    filled = 0
    while filled <= max(2 * last, 2 * cotarget):
        places = filled + tile
        if covered[places].any():
            break
        covered[places] = True
        chosen.append(filled)
        filled += int(covered[filled:].argmin())
        if len(chosen) * len(tile) == filled:
            modes, copies = recovered(chosen), -(-cotarget // filled)
            return modes if modes is None or copies == 1 else (*modes, (copies, filled))
        if filled >= cotarget and (not covers or len(chosen) < 2 * len(covers[0])):
            covers.append(list(chosen))
    return next((modes for modes in map(recovered, covers) if modes is not None), None)


def divided(a: Modes, tile: Modes) -> Modes | None:
    """The tile and its complement in the size of `a`: what a divide composes with. None without a complement."""
    rest = completed(table(tile), count(a))
    return None if rest is None else (*tile, *rest)


def repeats(block: Modes, tiler: Modes) -> Modes | None:
    """The complement of a block that the copies of its product with a tiler are taken from.

    None also for a tiler with images below 0, where the complement has nothing.
    """
    if any(stride < 0 < extent - 1 for extent, stride in tiler):
        return None
    cosize = 1 + sum([(extent - 1) * stride for extent, stride in tiler if stride > 0])
    return completed(table(block), count(block) * cosize)


# -- a layout through points ---------------------------------------------------------------------------------


def passes(points: Mapping[int, int]) -> bool | None:
    """Whether some layout has these images at these indices; None after CHAINS chains of extents.

    The strides of given extents are the coefficients that make the images an integer combination of the digits of
    the indices. Extents may be split into primes, and an extent counts only if some index has a digit beyond it.
    """
    indices = np.array(sorted(points, key=abs), np.int64)
    images = [points[index] for index in indices.tolist()]
    farthest = int(np.abs(indices).max())
    longest = 2 * farthest if indices.min() < 0 else farthest
    stack: list[tuple[int, ...]] = [()]
    for _ in range(CHAINS):
        if not stack:
            return False
        chain = stack.pop()
        digits, rest = _digits(indices, chain)
        if _spanned([*digits, rest.tolist()], images):
            return True
        below = np.flatnonzero((indices >= 0) & (rest == 0)).tolist()
        if not _spanned([[digit[i] for i in below] for digit in digits], [images[i] for i in below]):
            continue
        size = prod(chain)
        stack += [(*chain, prime) for prime in _primes(longest // size)]
    return None


def _digits(indices: IntArray, chain: tuple[int, ...]) -> tuple[list[list[int]], IntArray]:
    digits: list[list[int]] = []
    rest = indices
    for extent in chain:
        digits.append((rest % extent).tolist())
        rest = rest // extent
    return digits, rest


def _spanned(columns: list[list[int]], wanted: list[int]) -> bool:
    """Whether `wanted` is an integer combination of the columns: Euclid's algorithm, row by row."""
    left = list(wanted)
    lattice = [list(column) for column in columns]
    for row in range(len(left)):
        pivot: list[int] | None = None
        kept: list[list[int]] = []
        for column in lattice:
            while column[row] and pivot is not None:
                ratio = pivot[row] // column[row]
                pivot, column = column, [p - ratio * c for p, c in zip(pivot, column, strict=True)]  # noqa: PLW2901
            if column[row]:
                pivot = column
            else:
                kept.append(column)
        lattice = kept
        if pivot is not None:
            if left[row] % pivot[row]:
                return False
            ratio = left[row] // pivot[row]
            left = [a - ratio * b for a, b in zip(left, pivot, strict=True)]
        elif left[row]:
            return False
    return True


def _primes(limit: int) -> list[int]:
    return [n for n in range(2, limit + 1) if all(n % k for k in range(2, isqrt(n) + 1))]
