"""Neighbouring axes of a nest that all reads run through together, as one axis of tensors whose axes are joined alike.

So a convolution with filters of one element is a product of matrices, whose columns are all places of an image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from attrs import evolve

from argus.core import algebra
from argus.core.index import Const, Index
from argus.core.target import LARGEST_SIZE
from argus.core.walk import symbols
from argus.nests.nest import Axis, Nest, Read, TensorType
from argus.nests.rewrite import indices, reads, with_reads

_FIRST = 2
"""Axes before those that may become one: of images and channels."""

Types = Mapping[str, TensorType]


def with_joined_axes(nest: Nest, tensors: Types) -> tuple[Nest, Types]:
    """The nest over one axis for neighbouring ones of its domain, as often as there are such; else as it is.

    They are joined where each tensor that is read at one of them is read at both, one after the other, which are the
    coordinates of whole axes of it. The first two axes stay, as do extents that are no numbers. tensors: what it reads,
    by name; the result has them in their new shapes.
    """
    for outer, inner in reversed(list(pairwise(nest.domain[_FIRST:]))):
        places = _places(nest, tensors, outer, inner)
        if places is not None:
            return with_joined_axes(*_joined(nest, tensors, outer, inner, places))
    return nest, tensors


def _places(nest: Nest, tensors: Types, outer: Axis, inner: Axis) -> dict[str, int] | None:
    """The axis of each tensor at which it is read at the outer coordinate; None where they are not to be one."""
    both = {outer.symbol, inner.symbol}
    if not isinstance(outer.extent, Const) or not isinstance(inner.extent, Const):
        return None
    if outer.extent.value * inner.extent.value > LARGEST_SIZE or any(symbols(i) & both for i in indices(nest.body)):
        return None
    found: dict[str, int] = {}
    for read in reads(nest.body):
        at = _place(read, tensors[read.tensor].shape, outer, inner)
        if at is None or found.setdefault(read.tensor, at) != at:
            return None
    return {name: at for name, at in found.items() if at >= 0}


def _place(read: Read, shape: Sequence[Index], outer: Axis, inner: Axis) -> int | None:
    """The axis that is read at the outer coordinate, before that at the inner one; -1 at neither; None otherwise."""
    used = [k for k, place in enumerate(read.index) if symbols(place) & {outer.symbol, inner.symbol}]
    if not used:
        return -1
    first, wanted = used[0], (outer, inner)
    whole = read.index[first : first + 2] == (outer.index, inner.index)
    extents = tuple(axis.extent for axis in wanted)
    return first if len(used) == len(wanted) and whole and shape[first : first + 2] == extents else None


def _joined(nest: Nest, tensors: Types, outer: Axis, inner: Axis, places: Mapping[str, int]) -> tuple[Nest, Types]:
    """The nest and its tensors with both axes as one."""
    axis = Axis(f"{outer.name}_{inner.name}", algebra.mul(outer.extent, inner.extent))

    def joined(read: Read) -> Read:
        at = places.get(read.tensor)
        index = read.index
        return read if at is None else evolve(read, index=(*index[:at], axis.index, *index[at + 2 :]))

    def in_shape(of: TensorType) -> TensorType:
        at = places[of.name]
        return evolve(of, shape=(*of.shape[:at], axis.extent, *of.shape[at + 2 :]))

    at = nest.domain.index(outer)
    domain = (*nest.domain[:at], axis, *nest.domain[at + 2 :])
    made = evolve(nest, domain=domain, body=with_reads(nest.body, joined))
    return made, {name: in_shape(each) if name in places else each for name, each in tensors.items()}
