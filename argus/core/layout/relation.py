"""`Relation`: finite relations between integers, for functions that no layout represents."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index as integer
from typing import cast

import numpy as np
from attrs import field, frozen

from argus.core.layout.composed import LayoutLike
from argus.core.layout.faults import TABLE_LIMIT, LayoutError, malformed, too_large
from argus.core.layout.images.recover import Mismatch, recover_layout, recover_modes
from argus.core.layout.images.tables import LARGEST, first_repeated, tabulate
from argus.core.layout.inttuple import IntTuple, checked, flatten, product, text
from argus.core.layout.values import IntArray, Layout, of_modes
from argus.core.layout.witness import Collision

Pairs = IntArray | Iterable[tuple[int, int]]


@frozen
class Images:
    """The smallest index at which two relations differ, or one is not a function, and the images there."""

    index: int
    left: tuple[int, ...]
    right: tuple[int, ...] = ()


@frozen(eq=False, repr=False)
class Relation:
    """A finite set of integer pairs (index, image); an index may have several images and an image several indices.

    pairs: shape (n, 2), sorted, without duplicates, read-only. Raises LayoutError: E801 for anything but integer pairs,
    E810 for more than TABLE_LIMIT pairs or integers of more than 62 bits.
    """

    pairs: IntArray = field(converter=lambda pairs: _canonical(_as_pairs(pairs)))

    @classmethod
    def of(cls, f: LayoutLike) -> Relation:
        """The pairs (i, f(i)) for all i below size(f). Raises LayoutError (E810)."""
        return cls.of_values(tabulate(f))

    @classmethod
    def of_values(cls, values: Iterable[int]) -> Relation:
        """The pairs (i, values[i])."""
        images = _integers(values)
        return cls(np.stack([np.arange(len(images), dtype=np.int64), images], axis=1))

    # -- as a set ------------------------------------------------------------------------------------------

    def union(self, other: Relation) -> Relation:
        return Relation(np.concatenate([self.pairs, other.pairs]))

    def intersect(self, other: Relation) -> Relation:
        both = _sort_pairs(np.concatenate([self.pairs, other.pairs]))
        return Relation(both[1:][_equals_previous(both)])

    def restrict(self, indices: Iterable[int]) -> Relation:
        """The pairs whose index is one of these."""
        return Relation(self.pairs[np.isin(self.pairs[:, 0], _integers(indices))])

    def domain(self) -> IntArray:
        """All indices, ascending."""
        return np.unique(self.pairs[:, 0])

    def image(self) -> IntArray:
        """All images, ascending."""
        return np.unique(self.pairs[:, 1])

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Relation) and np.array_equal(self.pairs, other.pairs)

    def __hash__(self) -> int:
        return hash(self.pairs.tobytes())

    def __reduce__(self) -> tuple[object, ...]:
        return Relation, (self.pairs,)

    def __repr__(self) -> str:
        shown = ", ".join(f"{i} -> {image}" for i, image in cast(list[list[int]], self.pairs[:8].tolist()))
        return f"Relation({shown}{', ...' if len(self) > 8 else ''}; {len(self)} pairs)"

    # -- as a function -------------------------------------------------------------------------------------

    def __call__(self, index: int) -> tuple[int, ...]:
        """All images of an index, ascending; empty outside the domain."""
        low, high = np.searchsorted(self.pairs[:, 0], [index, index + 1])
        return tuple(cast(list[int], self.pairs[low:high, 1].tolist()))

    def compose(self, other: Relation) -> Relation:
        """self after other: (x, z) for each (x, y) of other and (y, z) of self. Raises LayoutError (E810)."""
        low = np.searchsorted(self.pairs[:, 0], other.pairs[:, 1], "left")
        counts = np.searchsorted(self.pairs[:, 0], other.pairs[:, 1], "right") - low
        total = int(counts.sum())
        if total > TABLE_LIMIT:
            raise too_large(f"the composition has {total} pairs")
        start = np.repeat(np.cumsum(counts) - counts, counts)
        place = np.repeat(low, counts) + np.arange(total, dtype=np.int64) - start
        return Relation(np.stack([np.repeat(other.pairs[:, 0], counts), self.pairs[place, 1]], axis=1))

    def inverse(self) -> Relation:
        """The pairs (image, index)."""
        return Relation(self.pairs[:, ::-1])

    def is_function(self) -> bool:
        """Whether each index of the domain has one image."""
        return self.ambiguity() is None

    def ambiguity(self) -> Images | None:
        """The smallest index with several images, and its images; None if there is none."""
        again = np.flatnonzero(self.pairs[1:, 0] == self.pairs[:-1, 0])
        if not len(again):
            return None
        index = int(self.pairs[again[0], 0])
        return Images(index, self(index))

    def is_injective(self) -> bool:
        """Whether no two indices share an image."""
        return self.collision() is None

    def collision(self) -> Collision | None:
        """The smallest index with an image of an earlier index, and the nearest such index; None if injective."""
        found = first_repeated(self.pairs[:, 1], self.pairs[:, 0])
        if found is None:
            return None
        image = min(set(self(found[0])) & set(self(found[1])))
        return Collision(*found, image)

    def first_difference(self, other: Relation) -> Images | None:
        """The smallest index at which the relations differ, and the images in each; None if they are equal."""
        both = _sort_pairs(np.concatenate([self.pairs, other.pairs]))
        same = _equals_previous(both)
        unmatched = np.ones(len(both), np.bool_)
        unmatched[1:] &= ~same
        unmatched[:-1] &= ~same
        if not unmatched.any():
            return None
        index = int(both[unmatched.argmax(), 0])
        return Images(index, self(index), other(index))

    def to_layout(self, shape: IntTuple | None = None) -> Layout:
        """The coalesced layout with these images; given a shape, a layout whose shape refines it leaf by leaf.

        Raises LayoutError: E804 if none exists, with the smallest index at which no layout of this size agrees, its
        image (expected) and the image in every layout that agrees before it (found); E801 for a shape of another size.
        """
        self._check_domain()
        values = np.ascontiguousarray(self.pairs[:, 1])
        if shape is None:
            modes = recover_modes(values)
            found = modes if isinstance(modes, Mismatch) else of_modes(modes)
        else:
            found = recover_layout(values, self._checked_shape(shape))
        if isinstance(found, Mismatch):
            refining = "" if shape is None else f" that refines {text(shape)}"
            raise LayoutError(
                "E804",
                f"no layout{refining} has these images: that of {found.index} is {found.image}, "
                f"and {found.forced} for any layout that agrees below it",
                help="keep the relation" if shape is None else "leave out the shape, or keep the relation",
                index=found.index,
                expected=found.image,
                found=found.forced,
            )
        return found

    def _checked_shape(self, shape: IntTuple) -> IntTuple:
        tree = checked(shape, "shape")
        if product(tree) != len(self) or min(flatten(tree), default=1) < 1:
            raise malformed(
                f"the shape {text(tree)} does not have {len(self)} elements", f"give extents of {len(self)}"
            )
        return tree

    def _check_domain(self) -> None:
        """Raises LayoutError (E804) unless this is a function on 0 .. n-1 with n at least 1."""
        indices = self.pairs[:, 0]
        wrong = indices != np.arange(len(indices))
        if len(indices) and not wrong.any():
            return
        place = int(wrong.argmax()) if wrong.any() else 0
        there = int(indices[place]) if len(indices) else 0
        fact = "has several images" if 0 <= there < place else "is in its domain" if there < 0 else "has no image"
        at = min(place, there)
        raise LayoutError(
            "E804",
            f"no layout is this relation, whose index {at} {fact}",
            help="restrict it to a function on 0 .. n-1",
            index=at,
        )


def _as_pairs(pairs: Pairs) -> IntArray:
    found = _integers(pairs)
    if len(found) > TABLE_LIMIT:
        raise too_large(f"the relation has {len(found)} pairs")
    if not len(found):
        return np.zeros((0, 2), np.int64)
    if found.ndim != 2 or found.shape[1] != 2:
        raise malformed(f"an array of shape {found.shape} holds no pairs", "give pairs (index, image)")
    return found


def _integers(values: Iterable[object]) -> IntArray:
    """The values as 64-bit integers. Raises LayoutError: E801 for non-integers, E810 for too many bits."""
    raw = cast(IntArray, values) if isinstance(values, np.ndarray) else list(values)
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "iu":
        exact = raw
    else:
        try:
            entries = np.array(raw, dtype=object)
            exact = cast(IntArray, np.frompyfunc(integer, 1, 1)(entries))
        except (TypeError, ValueError):
            raise malformed("a relation holds integers", "give pairs of ints") from None
    if exact.size and max(abs(int(exact.max())), abs(int(exact.min()))) >= LARGEST:
        raise LayoutError(
            "E810",
            f"an integer of a relation has more than {LARGEST.bit_length() - 1} bits",
            help="use smaller strides, or subtract what all images have in common",
        )
    return exact.astype(np.int64)


def _sort_pairs(pairs: IntArray) -> IntArray:
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _equals_previous(pairs: IntArray) -> np.ndarray:
    return (pairs[1:] == pairs[:-1]).all(axis=1)


def _canonical(pairs: IntArray) -> IntArray:
    """The pairs sorted, without duplicates, read-only."""
    ordered = _sort_pairs(pairs)
    unique = np.concatenate([ordered[:1], ordered[1:][~_equals_previous(ordered)]])
    unique.flags.writeable = False
    return unique
