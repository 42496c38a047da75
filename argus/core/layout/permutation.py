"""`Permutation`: a layout whose images are an interval, each once, as a permutation of 0 .. n-1 in cycles.

>>> from argus.layout import Layout, Permutation
>>> transpose = Permutation.of(Layout((3, 2), (2, 1)))
>>> transpose.cycles(), transpose.order(), transpose.parity()
(((0,), (1, 2, 4, 3), (5,)), 4, -1)
"""

from __future__ import annotations

from collections.abc import Iterable
from math import lcm

from attrs import field, frozen

from argus.core.layout.composed import LayoutLike
from argus.core.layout.faults import LayoutError, malformed
from argus.core.layout.images.tables import first_repeated, first_value_gap, tabulate
from argus.core.layout.inttuple import integer


def _checked(images: Iterable[int]) -> tuple[int, ...]:
    found = tuple([integer(image, "a permutation") for image in images])
    if sorted(found) != list(range(len(found))):
        raise malformed("the images are no permutation of 0 .. n-1", "give each of 0 .. n-1 once")
    return found


@frozen
class Permutation:
    """i -> images[i] on 0 .. n-1. Raises LayoutError (E801) unless each of 0 .. n-1 is the image of one index."""

    images: tuple[int, ...] = field(converter=_checked)

    @classmethod
    def of(cls, f: LayoutLike) -> Permutation:
        """i -> f(i) - the smallest image. Raises LayoutError: E806 unless the images are an interval, each once; E810.

        In E806, `index` is the first index that repeats an image; for a gap it is None, and `expected` the value that
        no index has.
        """
        table = tabulate(f)
        pair = first_repeated(table)
        if pair is not None:
            raise LayoutError(
                "E806",
                f"{f} maps both {pair[0]} and {pair[1]} to {table[pair[1]]}: it permutes nothing",
                help="drop modes of stride 0 with `filter`, or take a tile with distinct images",
                index=pair[1],
            )
        gap = first_value_gap(table)
        if gap is not None:
            raise LayoutError(
                "E806",
                f"no index of {f} has the image {gap}, though smaller and larger ones occur: it permutes nothing",
                help="give a layout whose images are an interval; `is_contiguous` finds the first gap",
                expected=gap,
            )
        return cls((table - table.min()).tolist())

    def cycles(self) -> tuple[tuple[int, ...], ...]:
        """The cycles i, images[i], images[images[i]], ..., each from its smallest element on; fixed points are of one.

        They ascend by their smallest element.
        """
        unseen = [True] * len(self.images)
        found: list[tuple[int, ...]] = []
        for first in range(len(self.images)):
            cycle: list[int] = []
            at = first
            while unseen[at]:
                unseen[at] = False
                cycle.append(at)
                at = self.images[at]
            if cycle:
                found.append(tuple(cycle))
        return tuple(found)

    def fixed_points(self) -> tuple[int, ...]:
        """The indices that are their own images, ascending."""
        return tuple([index for index, image in enumerate(self.images) if index == image])

    def order(self) -> int:
        """The least k > 0 such that k applications are the identity: the least common multiple of cycle lengths."""
        return lcm(*map(len, self.cycles()))

    def parity(self) -> int:
        """+1 for an even number of transpositions, -1 for an odd one."""
        return -1 if (len(self.images) - len(self.cycles())) % 2 else 1
