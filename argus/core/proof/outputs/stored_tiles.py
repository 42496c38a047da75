"""The elements that a store writes: their layout, and their coordinates over those of the stored tile."""

from __future__ import annotations

from argus.core import algebra
from argus.core.index import Cond, Index
from argus.core.ir import Copy, View
from argus.core.layout import TV
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.affine import affine, at_any_element


def store_layout(store: Access) -> TV | None:
    """The thread-value layout of the stored elements; None if the store is not a copy."""
    return store.step.stmt.by if isinstance(store.step.stmt, Copy) else None


def source_of(store: Access) -> View:
    """The tile that is stored."""
    stmt = store.step.stmt
    assert isinstance(stmt, Copy)
    return stmt.source


def coordinates_of(store: Access, held: TV | None) -> tuple[Index | None, ...]:
    """The index of each stored element, over its coordinates in the tile; None along axes without such a form."""
    found: list[Index | None] = []
    for place in store.places or ():
        own = None if held is None else affine(place.table, held)
        found.append(None if own is None else algebra.add(place.base, own))
    return tuple(found)


def inside_tensor(store: Access, held: TV | None) -> tuple[Cond, ...]:
    """That an arbitrary stored element lies in the tensor, and before the ends of the store."""
    if held is None or store.places is None:
        return ()
    places = coordinates_of(store, held)
    pairs = zip(places, store.view.buffer.shape, strict=True)
    inside = [algebra.lt(at, extent) for at, extent in pairs if at is not None]
    for each in store.ends:
        at = places[each.axis]
        inside += [] if at is None else [each.holds(at)]
    return tuple(at_any_element(cond, held) for cond in inside)
