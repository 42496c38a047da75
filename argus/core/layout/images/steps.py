"""A layout as a sum of floor functions, and the first index at which such a sum deviates from a linear one.

On all integers, A(n) = slope * n + sum over k of jump_k * floor(n / below_k): below_k is the product of the extents
before mode k, jump_k the difference between its stride and the stride that would continue mode k - 1. Compositions are
decided with it, without a table: along strides d_i, with coordinates x_i,

    A(sum x_i d_i) - sum x_i A(d_i) = sum over k of jump_k * floor((sum x_i * (d_i mod below_k)) / below_k).
"""

from __future__ import annotations

from math import prod

import numpy as np

from argus.core.layout.faults import TABLE_LIMIT, LayoutError

Jumps = tuple[tuple[int, int], ...]
"""(below, jump) for each nonzero jump, by ascending `below`."""

_CHUNK = 1 << 18


def steps(modes: tuple[tuple[int, int], ...]) -> tuple[int, Jumps]:
    """The slope and the jumps of a layout with these flat modes; the last mode is unbounded."""
    slope = 0
    found: list[tuple[int, int]] = []
    below, carried = 1, 0
    last = len(modes) - 1
    for place, (extent, stride) in enumerate(modes):
        if extent == 1 and place != last:
            continue
        if below == 1:
            slope = stride
        elif stride != carried:
            found.append((below, stride - carried))
        carried = extent * stride
        below *= extent
    return slope, tuple(found)


def evaluate(slope: int, jumps: Jumps, index: int) -> int:
    return slope * index + sum([jump * (index // below) for below, jump in jumps])


def first_deviation(jumps: Jumps, parts: list[tuple[int, int]]) -> int | None:
    """The smallest index at which A along `parts` differs from the sum of A along each part; None if it never does.

    parts: (extent, stride) pairs. Raises LayoutError (E810) if deviations cancel each other over more than TABLE_LIMIT
    elements.
    """
    starts = [_first_index_reaching(below, [(n, d % below) for n, d in parts]) for below, _ in jumps]
    begin = min([start for start in starts if start is not None], default=None)
    if begin is None:
        return None
    size = prod([n for n, _ in parts])
    length, scanned = 1, 0
    while begin < size:
        if scanned > TABLE_LIMIT:
            raise LayoutError(
                "E810",
                f"strides that cancel each other need a table of {size} elements, {TABLE_LIMIT} is the limit",
                help="compose mode by mode, or with a smaller tile",
            )
        end = min(size, begin + length)
        bad = _deviations(jumps, parts, np.arange(begin, end, dtype=np.int64))
        if bad.any():
            return begin + int(bad.argmax())
        scanned += length
        begin, length = end, min(length * 8, _CHUNK)
    return None


def _first_index_reaching(need: int, parts: list[tuple[int, int]]) -> int | None:
    """The smallest index at which the sum of x_i * r_i is at least `need`."""
    lower = sum([(n - 1) * r for n, r in parts])
    if lower < need:
        return None
    index = 0
    for n, r in reversed(parts):
        lower -= (n - 1) * r
        x = -(-(need - lower) // r) if need > lower else 0
        need -= x * r
        index = index * n + x
    return index


def _deviations(jumps: Jumps, parts: list[tuple[int, int]], indices: np.ndarray) -> np.ndarray:
    """For each index, whether the sum of floors is nonzero; uses Python integers where 64 bits might overflow."""
    largest = max([below for below, _ in jumps]) * sum([n for n, _ in parts]) * max([abs(j) for _, j in jumps])
    kind = np.int64 if largest < 1 << 60 else object
    rest = indices.astype(kind)
    sums = [np.zeros(len(indices), kind) for _ in jumps]
    for n, d in parts:
        digit = rest % n
        rest = rest // n
        sums = [total + digit * (d % below) for total, (below, _) in zip(sums, jumps, strict=True)]
    parts_of = [jump * (total // below) for total, (below, jump) in zip(sums, jumps, strict=True)]
    return sum(parts_of[1:], parts_of[0]) != 0
