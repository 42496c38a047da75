"""Tensors as arrays over their tags, which are functions of coordinates, sizes and tensors of integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core.algebra import TRUE
from argus.core.index import Cond, Coord, Index, Node, Symbol
from argus.core.ir import View, axes_of
from argus.core.walk import IntArray, evaluate
from argus.verifier.reference import Exact

_MOST = 1 << 24
"""The largest number of combinations of tags, or of elements of a view, that an array is made for."""
Bools = npt.NDArray[np.bool_]


@frozen(eq=False)
class Known:
    """What expressions are evaluated with: sizes, and tensors of integers by their names in the kernel."""

    sizes: Mapping[Symbol, int]
    integers: Mapping[str, IntArray] = field(factory=dict[str, IntArray])

    def value(self, node: Node, shape: Sequence[int] = ()) -> npt.NDArray[Any]:
        """An expression at each coordinate of a shape. Raises ValueError if it depends on anything else."""
        coords = np.indices(tuple(shape), dtype=np.int64)
        try:
            found = evaluate(node, self.sizes, list(coords), self.integers)
        except (KeyError, IndexError, ZeroDivisionError) as problem:
            raise ValueError("of more than coordinates, sizes and integers in memory") from problem
        return np.broadcast_to(np.asarray(found), tuple(shape))


@frozen
class Record:
    """Tags of the elements of a view, by expressions over its coordinates. where: at which elements they hold."""

    names: tuple[tuple[str, Index], ...]
    view: View
    where: Cond = TRUE

    @property
    def axes(self) -> tuple[str, ...]:
        """The name of each axis of the buffer, where every tag is a coordinate of a whole buffer; else empty."""
        order = axes_of(self.view)
        found = {index.axis: name for name, index in self.names if isinstance(index, Coord)}
        if order is None or self.where is not TRUE or not len(self.names) == len(order) == len(found):
            return ()
        return tuple(found[at] for at in order)

    def over_tags(self, array: Exact, known: Known) -> Exact:
        """The elements with an axis for each tag, NaN where none has the tags; elements outside of the tensor are 0.

        Raises ValueError if two have the same tags, or if there are too many.
        """
        at, held, shape = self._places(array.shape, known)
        tags = [known.value(index, shape) for _, index in self.names]
        used = np.logical_and.reduce([each >= 0 for each in tags]) if tags else np.ones(shape, np.bool_)
        extents = tuple(int(each.max(initial=-1)) + 1 for each in tags)
        if prod(extents) > _MOST:
            raise ValueError("too many combinations of tags")
        found, taken = np.full(extents, np.nan), np.zeros(extents, np.bool_)
        place = tuple(each[used] for each in tags)
        found[place], taken[place] = np.where(held, array[at], 0.0)[used], True
        if np.count_nonzero(taken) != np.count_nonzero(used):
            raise ValueError("two elements with the same tags")
        return found

    def at_tags(self, values: Exact, axes: Sequence[str], like: Sequence[int], known: Known) -> tuple[Exact, Bools]:
        """The value of each element of a buffer of shape `like` by its tags, and whether these hold of it.

        Raises ValueError if an element has a tag that `values` has not, or if two elements of the view are one.
        """
        at, held, shape = self._places(like, known)
        held = held & known.value(self.where, shape).astype(np.bool_)
        tags = dict(self.names)
        places = [known.value(tags[axis], shape)[held] for axis in axes]
        if any(p.size and (p.min() < 0 or p.max() >= e) for e, p in zip(values.shape, places, strict=True)):
            raise ValueError("a tag that no element has")
        found, told = np.zeros(tuple(like)), np.zeros(tuple(like), np.bool_)
        own = tuple(each[held] for each in at)
        found[own], told[own] = values[tuple(places)], True
        if np.count_nonzero(told) != np.count_nonzero(held):
            raise ValueError("two elements of a view that are one of the tensor")
        return found, told

    def _places(self, like: Sequence[int], known: Known) -> tuple[tuple[IntArray, ...], Bools, tuple[int, ...]]:
        """For each element of the view, the buffer's coordinates, and whether it is inside; and the view's shape."""
        shape = tuple(int(known.value(extent)) for extent in self.view.shape)
        if prod(shape) > _MOST:
            raise ValueError("too many elements")
        at = [known.value(index, shape) for index in self.view.at]
        held = known.value(self.view.where, shape).astype(np.bool_)
        for extent, place in zip(like, at, strict=True):
            held = held & (place >= 0) & (place < extent)
        clipped = tuple(np.clip(place, 0, max(0, extent - 1)) for extent, place in zip(like, at, strict=True))
        return cast("tuple[IntArray, ...]", clipped), held, shape


def record_of(names: Sequence[tuple[str, Index]], view: View, where: Cond = TRUE) -> Record | None:
    """The tags that a view's names give to its elements; None if a name occurs twice."""
    unique = len({name for name, _ in names}) == len(names)
    return Record(tuple(names), view, where) if unique else None
