"""The relation of a projected fragment's axes to the axes of its original tile."""

from __future__ import annotations

from math import prod

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Index

Digits = tuple[tuple[int, int], ...]


def merge_digits(digits: Digits) -> Digits:
    """Merge adjacent digits and drop digits of size 1."""
    found: list[tuple[int, int]] = []
    for below, size in digits:
        if size == 1:
            continue
        if found and found[-1][0] * found[-1][1] == below:
            found[-1] = (found[-1][0], found[-1][1] * size)
        else:
            found.append((below, size))
    return tuple(found)


@frozen
class Facet:
    """A fragment axis that numbers some digits of the coordinate `c` along axis `axis` (extent `of`) of the original
    tile.

    digits: pairs (below, size), lowest first; the fragment coordinate is the sum of `c // below % size` times the
    product of the sizes before. A full axis is ((1, of),).
    """

    axis: int
    of: int
    digits: Digits = field(converter=merge_digits)

    @property
    def extent(self) -> int:
        return prod(size for _, size in self.digits)

    def select_digits(self, selected: Digits) -> Facet:
        """The axis that numbers the digits `selected` of this axis' coordinate.

        Raises ValueError for a digit that spans several digits of this axis.
        """
        found = tuple(self._digit(below, size) for below, size in selected)
        return Facet(self.axis, self.of, tuple((self.digits[at][0] * start, size) for at, start, size in found))

    def from_finer(self, finer: Facet, coordinate: Index) -> Index | None:
        """This axis' coordinate in terms of the finer axis' coordinate; None if that does not determine it."""
        if finer.of != self.of:
            return None
        total: Index = algebra.const(0)
        weight = 1
        for below, size in self.digits:
            part = finer.value_of(below, size, coordinate)
            if part is None:
                return None
            total = algebra.add(total, algebra.mul(part, weight))
            weight *= size
        return total

    def value_of(self, below: int, size: int, coordinate: Index) -> Index | None:
        """`c // below % size` in terms of this axis' coordinate; None if that does not determine it."""
        weight = 1
        for own, extent in self.digits:
            start = below // own
            if below % own == 0 and extent % start == 0 and start * size <= extent:
                low = weight * start
                rest = algebra.floordiv(coordinate, low)
                return rest if low * size == self.extent else algebra.mod(rest, size)
            weight *= extent
        return None

    def _digit(self, below: int, size: int) -> tuple[int, int, int]:
        """(digit, start in the digit, size) of a part of this axis' coordinate."""
        weight = 1
        for at, (_, extent) in enumerate(self.digits):
            if weight <= below < weight * extent:
                start = below // weight
                if below % weight == 0 and extent % (start * size) == 0:
                    return at, start, size
                break
            weight *= extent
        raise ValueError(f"digits {below} to {below * size} of an axis run over several of {self.digits}")


def tile_axes(tile: tuple[int, ...]) -> tuple[Facet, ...]:
    """The axes of an unprojected tile."""
    return tuple(Facet(axis, extent, ((1, extent),)) for axis, extent in enumerate(tile))


def covers_tile(facets: tuple[Facet, ...]) -> bool:
    """Whether these are all full axes of a tile, in any order."""
    return sorted(facet.axis for facet in facets) == list(range(len(facets))) and all(
        facet.extent == facet.of for facet in facets
    )


def coordinates_from_finer(finer: tuple[Facet, ...], coarser: tuple[Facet, ...]) -> tuple[Index, ...] | None:
    """The coordinates of a coarser fragment in terms of a finer one's; None if these do not determine them.

    Unprojected tiles of equal rank match axis by axis, whatever was transposed before; projections match by original
    axis.
    """
    if covers_tile(finer) and covers_tile(coarser) and len(finer) == len(coarser):
        if [facet.of for facet in finer] != [facet.of for facet in coarser]:
            return None
        return tuple(algebra.coord(axis) for axis in range(len(finer)))
    at = {facet.axis: position for position, facet in enumerate(finer)}
    found: list[Index] = []
    for facet in coarser:
        position = at.get(facet.axis)
        if position is None:
            return None
        expression = facet.from_finer(finer[position], algebra.coord(position))
        if expression is None:
            return None
        found.append(expression)
    return tuple(found)
