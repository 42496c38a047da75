"""Test oracles: the expected results of layout operations, computed from explicit tables.

Nothing here uses the algebra under test. Layouts are flat modes, ((extent, stride), ...), or trees of shape and stride;
functions are tables. A table with first image 0 is a layout's if and only if splitting it repeatedly at its first
discontinuity yields modes with that table: the coalesced layout of a function is unique.
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

CHAINS = 5_000
"""Limit of chains of extents in the search for a layout through points."""


def flat(shape: IntTuple, stride: IntTuple) -> Modes:
    """(extent, stride) of every leaf, the fastest first."""
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
    """The images of any integers: the last mode is unbounded."""
    total = np.zeros(indices.shape, np.int64)
    rest = indices
    for place, (extent, stride) in enumerate(modes):
        if place == len(modes) - 1:
            return total + rest * stride
        total += rest % extent * stride
        rest = rest // extent
    return total


def layout_of_table(images: Sequence[int]) -> Modes | None:
    """The coalesced modes of the unique layout with this table; None if there is none."""
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
        if layout_of_table(along.tolist()) is None:
            return False
        total = (along[:, None] + total).ravel()
    return np.array_equal(total, images_of(a, table(b)))


def expected_complement(images: Sequence[int] | IntArray, cotarget: int) -> Modes | None:
    """The ascending R whose sums with the images are distinct, cover [0, cotarget), and have no gap if possible.

    Greedy: the least integer not yet covered must itself be in R. A set that tiles any interval tiles one of at most
    twice its largest element [de Bruijn 1950, On bases for the set of integers], and then its multiples. Any other set
    covers until its copies overlap; the result is the first of its covers that is a layout and has less than twice as
    many elements as the first cover.
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
            modes, copies = layout_of_table(chosen), -(-cotarget // filled)
            return modes if modes is None or copies == 1 else (*modes, (copies, filled))
        if filled >= cotarget and (not covers or len(chosen) < 2 * len(covers[0])):
            covers.append(list(chosen))
    return next((modes for modes in map(layout_of_table, covers) if modes is not None), None)


def tile_and_complement(a: Modes, tile: Modes) -> Modes | None:
    """The tile and its complement in the size of `a`, with which a divide composes; None without a complement."""
    rest = expected_complement(table(tile), count(a))
    return None if rest is None else (*tile, *rest)


def product_complement(block: Modes, tiler: Modes) -> Modes | None:
    """The complement of a block from which its product with a tiler takes the copies.

    A tiler of one element needs none. None also for a tiler with negative images, for which the complement is not
    defined.
    """
    if count(tiler) == 1:
        return ((1, 0),)
    if any(stride < 0 < extent - 1 for extent, stride in tiler):
        return None
    cosize = 1 + sum([(extent - 1) * stride for extent, stride in tiler if stride > 0])
    return expected_complement(table(block), count(block) * cosize)


# -- a layout through points ---------------------------------------------------------------------------------


def layout_exists_through(points: Mapping[int, int]) -> bool | None:
    """Whether some layout has these images at these indices; None if undecided after CHAINS chains of extents.

    For given extents, the strides are the coefficients of the images as an integer combination of the indices' digits.
    It suffices to try prime extents, each only if some index has a digit beyond it. Whatever extents follow, indices
    with one rest differ in the digits so far alone, and those with rest 0 have no others.
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
        pairs = _with_one_rest(rest.tolist())
        steps = [[digit[i] - (0 if j is None else digit[j]) for i, j in pairs] for digit in digits]
        if not _spanned(steps, [images[i] - (0 if j is None else images[j]) for i, j in pairs]):
            continue
        size = prod(chain)
        stack += [(*chain, prime) for prime in _primes(longest // size)]
    return None


def _with_one_rest(rests: list[int]) -> list[tuple[int, int | None]]:
    """Each place with an earlier one of the same rest; the place alone where the rest is 0."""
    first: dict[int, int] = {}
    pairs: list[tuple[int, int | None]] = []
    for place, rest in enumerate(rests):
        if rest == 0:
            pairs.append((place, None))
        elif first.setdefault(rest, place) != place:
            pairs.append((place, first[rest]))
    return pairs


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
        remaining: list[list[int]] = []
        for column in lattice:
            while column[row] and pivot is not None:
                ratio = pivot[row] // column[row]
                pivot, column = column, [p - ratio * c for p, c in zip(pivot, column, strict=True)]  # noqa: PLW2901
            if column[row]:
                pivot = column
            else:
                remaining.append(column)
        lattice = remaining
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
