"""Outputs that are stored from the end: what they hold, in terms of how far an element lies from the end of an axis.

A scan from the last element on stores element N - 1 - t at the place t of its tiles. Over the coordinate t its value
has the form of a scan from the first element on, and the claim about element N - 1 - t is the claim about all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Index, Sym
from argus.core.ir import Buffer, Equals
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.separable_index import Separable, separable
from argus.core.values.rewriting import substitute


def turned(flow: Flow, output: Buffer) -> frozenset[int]:
    """The axes of an output along which every store places its tiles, or the elements of a tile, from the end on."""
    places = [
        access.places
        for step in flow.timeline.steps
        for access in flow.accesses.of(step)
        if access.mode == "write" and access.view.buffer is output
    ]
    axes = range(len(output.shape))
    return frozenset(axis for axis in axes if all(each is not None and _falls(each[axis]) for each in places))


def _falls(place: Separable) -> bool:
    if any(factor < 0 for factor in _of_tiles(place.base)):
        return True
    return not any(_of_tiles(place.base)) and bool(place.table.flat[-1] < place.table.flat[0])


def _of_tiles(base: Index) -> Iterator[int]:
    """The factors of numbers of blocks and of iterations."""
    for atom, factor in linear_terms(base)[0]:
        if isinstance(atom, Sym) and atom.symbol.kind in ("block", "loop"):
            yield factor


def from_the_start(store: Access, places: tuple[Separable, ...]) -> tuple[Separable, ...]:
    """The places of a store, along axes that it fills from the end as how far they lie from it.

    Each element is at one such place, and they run from 0 to below the extent as the coordinates do: so every element
    is stored, or stored once, if that is so of these places.
    """
    if store.ends:
        return places
    found = zip(places, store.view.buffer.shape, strict=True)
    return tuple(
        separable(algebra.sub(algebra.sub(size, 1), place.base), -place.table) if _falls(place) else place
        for place, size in found
    )


def from_the_end(output: Buffer, at: Sequence[Index], axes: frozenset[int]) -> tuple[Index, ...]:
    """The coordinates of an element, of which those along these axes are given from the end of the tensor."""
    return tuple(
        algebra.sub(algebra.sub(size, 1), own) if axis in axes else own
        for axis, (own, size) in enumerate(zip(at, output.shape, strict=True))
    )


def claim_from_the_end(claim: Equals, order: Sequence[int], axes: frozenset[int]) -> Equals:
    """The claim about the element with these coordinates. order: the tensor's axis of each of the claim's."""
    own = [algebra.coord(number) for number in range(len(order))]
    shape = [claim.view.buffer.shape[axis] for axis in order]
    moved = tuple(
        algebra.sub(algebra.sub(size, 1), at) if axis in axes else at
        for at, size, axis in zip(own, shape, order, strict=True)
    )
    return evolve(claim, formula=substitute(claim.formula, {}, moved))
