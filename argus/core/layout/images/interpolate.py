"""Interpolation: find a layout `shape:stride` with given images at given indices.

Indices may have gaps, and may be negative or beyond the size, where the last mode extends as in a call. Splitting the
extents of a solution into primes yields another solution, so the search tries all chains of prime extents. Points with
one quotient by a chain's size differ in its digits alone, whatever extents follow: the search drops a chain as soon as
no integer strides yield these differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd

import numpy as np
from attrs import define, field

from argus.core.layout.coalesce import coalesce_modes
from argus.core.layout.faults import LayoutError
from argus.core.layout.values import IntArray, Layout, of_modes

CHAINS = 20_000
"""Most chains of extents that a search tries."""
POINTS = 1 << 12
_POINT_BITS = 34
"""Most bits of an index or image."""


def interpolating_layout(points: Mapping[int, int]) -> Layout | None:
    """A layout with these images and the fewest prime extents; None if there is none.

    Its last extent reaches the index of largest absolute value. Raises LayoutError (E810) for more than POINTS points
    or after CHAINS chains.
    """
    if len(points) > POINTS:
        raise _limit_error(f"{len(points)} points", POINTS)
    last = max(map(abs, points), default=0)
    if max(last, *map(abs, points.values()), 0) >> _POINT_BITS:
        raise _limit_error(f"indices or images of {_POINT_BITS} bits", 1 << _POINT_BITS)
    places = np.array(sorted(points), np.int64)
    images = np.array([points[each] for each in places.tolist()], np.int64)
    search = _Search(places, images, last, min(points, default=0) < 0)
    level: list[tuple[int, ...]] = [()]
    while level:
        for chain in level:
            strides = search.strides(chain, complete=True)
            if strides is not None:
                return search.layout(chain, strides)
        level = [extensions for chain in level for extensions in search.extensions(chain)]
    return None


@define
class _Search:
    indices: IntArray
    images: IntArray
    last: int
    negative: bool
    tried: int = field(default=0, init=False)

    def extensions(self, chain: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The chain extended by each prime that still admits strides for the points of one quotient by the size."""
        size = 1
        for extent in chain:
            size *= extent
        for prime in _primes(self._largest_prime(size)):
            self.tried += 1
            if self.tried > CHAINS:
                raise _limit_error(f"{CHAINS} chains of extents", CHAINS)
            if self.strides((*chain, prime), complete=False) is not None:
                yield (*chain, prime)

    def _largest_prime(self, size: int) -> int:
        """The largest prime worth trying as the next extent.

        Negative indices count from the end of the extent. An extent that exceeds the digits on both sides of 0
        suffices, and there is a prime between a number and its double [Bertrand's postulate].
        """
        if not self.negative:
            return self.last // size
        return 2 * (-(-self.last // size) + 1) if size <= self.last else 1

    def strides(self, chain: tuple[int, ...], *, complete: bool) -> list[int] | None:
        """Integer strides that fit the points, None if there are none.

        complete: fit all points, with an unbounded last mode; else only the differences of points with one quotient by
        the size, and the points whose quotient is 0.
        """
        rest = self.indices
        columns: list[IntArray] = []
        for extent in chain:
            columns.append(rest % extent)
            rest = rest // extent
        if complete:
            return _fitting([*columns, rest], self.images)
        # Indices ascend, so quotients do: each point is compared with the first of its quotient.
        first = np.searchsorted(rest, rest)
        from_zero = rest == 0
        kept = from_zero | (first < np.arange(len(rest)))
        differences = [np.where(from_zero, each, each - each[first])[kept] for each in (*columns, self.images)]
        return _fitting(differences[:-1], differences[-1])

    def layout(self, chain: tuple[int, ...], strides: list[int]) -> Layout:
        size = 1
        for extent in chain:
            size *= extent
        # Negative indices lie outside every extent: coalescing must not drop the last mode as one of extent 1.
        extents = (*chain, max(2, self.last // size + 1))
        return of_modes(coalesce_modes(tuple(zip(extents, strides, strict=True))))


def _fitting(columns: list[IntArray], wanted: IntArray) -> list[int] | None:
    """Integers x with sum of x_k columns[k] = wanted, or None if there are none.

    Few rows determine x: solve for some, look for the first row that the solution misses, and solve again with it.
    """
    rows: list[list[int]] = []
    while True:
        found = solve_integers(rows, len(columns))
        if found is None or not len(wanted):
            return found
        if max(map(abs, found), default=0) >> _SAFE_BITS:
            rows = [[*map(int, row), int(image)] for *row, image in zip(*columns, wanted, strict=True)]
            return solve_integers(rows, len(columns))
        missed = sum((x * column for x, column in zip(found, columns, strict=True)), np.zeros_like(wanted)) != wanted
        if not missed.any():
            return found
        place = int(missed.argmax())
        rows.append([*[int(column[place]) for column in columns], int(wanted[place])])


_SAFE_BITS = 24
"""Bits of a stride with which no product of it and a digit, nor their sum, exceeds 62."""


def solve_integers(rows: list[list[int]], unknowns: int) -> list[int] | None:
    """Integers x with rows[i][:-1] . x = rows[i][-1] for each row, or None: column operations to echelon form."""
    basis = [[int(i == j) for j in range(unknowns)] for i in range(unknowns)]
    value = [0] * unknowns
    first = 0
    for row in rows:
        heads = [sum(c * b for c, b in zip(row, column, strict=False)) for column in basis]
        missing = row[unknowns] - sum(c * v for c, v in zip(row, value, strict=False))
        for place in range(first + 1, unknowns):
            while heads[place]:
                ratio = heads[first] // heads[place]
                basis[first] = [a - ratio * b for a, b in zip(basis[first], basis[place], strict=True)]
                heads[first] -= ratio * heads[place]
                basis[first], basis[place] = basis[place], basis[first]
                heads[first], heads[place] = heads[place], heads[first]
        pivot = heads[first] if first < unknowns else 0
        if pivot == 0:
            if missing:
                return None
            continue
        if missing % pivot:
            return None
        value = [v + missing // pivot * b for v, b in zip(value, basis[first], strict=True)]
        first += 1
    return value


def _primes(limit: int) -> Iterator[int]:
    """The primes up to and including `limit`."""
    found = 1
    for number in range(2, limit + 1):
        if gcd(number, found) == 1:
            found *= number
            yield number


def _limit_error(what: str, limit: int) -> LayoutError:
    return LayoutError(
        "E810",
        f"no layout found within {what}, and none excluded",
        help=f"ask about fewer elements: the search stops at {limit}",
    )
