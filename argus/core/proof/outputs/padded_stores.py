"""Stores hold no padding inside a tensor (I4): its extents imply the bounds of what is stored."""

from __future__ import annotations

from collections.abc import Sequence

from argus.core import algebra
from argus.core.index import Cond, Const, Index
from argus.core.ir import Copy
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.separable_index import Separable, equal_indices, extremes, plus_number
from argus.core.proof.obligation import Obligation
from argus.core.proof.values.content import Inside


def no_padding_obligation(
    store: Access, places: tuple[Separable, ...], bound: Inside, context: tuple[Cond, ...], extents: Sequence[Index]
) -> Obligation:
    """An element stored below these extents is not padding: the extents imply the value's bounds."""
    name = store.view.buffer.name
    what = f"no padding is stored in `{name}`"
    goal = algebra.all_of(bound.of(end) for end in extremes(bound.coordinate))
    for place, extent in zip(places, extents, strict=True):
        apart = algebra.sub(extent, bound.extent)
        if _mirrored_bound(place, bound):
            goal = algebra.TRUE
            break
        if _same_bound(place, apart, bound):
            below = isinstance(apart, Const) and apart.value <= 0  # then no coordinate is less than its place
            least = algebra.all_of(algebra.le(0, end) for end in extremes(bound.coordinate))
            goal = algebra.TRUE if bound.open or below else least
            break
    edge = () if not isinstance(store.step.stmt, Copy) else below_extents(places, extents)
    return Obligation("I4", what, store.step.stmt, goal, (*context, *edge), compared=places[0].table.size)


def _same_bound(place: Separable, apart: Index, bound: Inside) -> bool:
    """Whether `place < extent` is the bound, with this added on both sides."""
    at = bound.coordinate
    if isinstance(at, Separable):
        return equal_indices(place, Separable(algebra.add(at.base, apart), at.table)) is algebra.TRUE
    return isinstance(apart, Const) and equal_indices(place, plus_number(at, apart.value)) is algebra.TRUE


def _mirrored_bound(place: Separable, bound: Inside) -> bool:
    """Whether the bound is that the place is at least 0, or less: what is stored has such places alone."""
    at = bound.coordinate
    if not bound.open or not isinstance(at, Separable) or at.table.shape != place.table.shape:
        return False
    both = Separable(algebra.add(at.base, place.base), at.table + place.table)
    below = algebra.sub(both.most, bound.extent)
    return both.uniform and isinstance(below, Const) and below.value < 0


def below_extents(places: tuple[Separable, ...], extents: Sequence[Index]) -> tuple[Cond, ...]:
    pairs = zip(places, extents, strict=True)
    return tuple(algebra.lt(place.least, extent) for place, extent in pairs)
