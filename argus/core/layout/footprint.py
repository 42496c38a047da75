"""`footprint`: how many addresses a layout has, over which range, with which gaps.

>>> from argus.layout import Layout, footprint
>>> padded = footprint(Layout((4, 2), (1, 6)))
>>> padded.runs, padded.span, padded.holes, padded.reuse
(((0, 4), (6, 4)), 10, 2, Fraction(1, 1))
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from attrs import frozen

from argus.core.layout.composed import LayoutLike
from argus.core.layout.images.tables import tabulate


@frozen
class Footprint:
    """The addresses of a layout, in elements.

    elements: the size of the domain. runs: (first address, length) of each run of consecutive addresses, ascending.
    """

    elements: int
    runs: tuple[tuple[int, int], ...]

    @property
    def lowest(self) -> int:
        return self.runs[0][0]

    @property
    def highest(self) -> int:
        first, length = self.runs[-1]
        return first + length - 1

    @property
    def span(self) -> int:
        """The length of the shortest interval that holds all addresses."""
        return self.highest - self.lowest + 1

    @property
    def addresses(self) -> int:
        """The number of distinct addresses."""
        return sum([length for _, length in self.runs])

    @property
    def holes(self) -> int:
        """The integers of the span that are no addresses."""
        return self.span - self.addresses

    @property
    def reuse(self) -> Fraction:
        """Elements of an address, on average: 1 without repetition."""
        return Fraction(self.elements, self.addresses)


def footprint(f: LayoutLike) -> Footprint:
    """The addresses of a layout, read off a table. Raises LayoutError (E810) if it would be too large."""
    table = tabulate(f)
    distinct = np.unique(table)
    starts = np.flatnonzero(np.diff(distinct, prepend=distinct[0] - 2) > 1)
    lengths = np.diff(starts, append=len(distinct))
    runs = tuple(zip(distinct[starts].tolist(), lengths.tolist(), strict=True))
    return Footprint(len(table), runs)
