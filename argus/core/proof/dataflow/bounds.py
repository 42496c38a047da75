"""Compares the bounds of two values, and carries the bounds of a value on loop entry over to every iteration.

Bounds state which elements are data and which are padding. Their order does not matter, and a bound that holds for
every element is equivalent to no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from math import isnan

from attrs import evolve

from argus.core import algebra
from argus.core.index import Cond
from argus.core.proof.dataflow.separable_index import (
    FragmentIndex,
    Piecewise,
    equal_indices,
    extremes,
    separable,
    symbolic_parts,
)
from argus.core.proof.dataflow.timeline import Loop
from argus.core.proof.values.content import Data, Inside
from argus.core.walk import symbols

_MAX_PERMUTED = 4
"""Up to this number, bounds are compared in every order."""


def equal_bounds(one: Data, two: Data) -> Cond | None:
    """The condition that two values have data at the same elements and equal padding elsewhere; None if unknown.

    A fill of `nan` in the first stands for an unknown number; its padding is then not compared.
    """
    mine, theirs = _unmatched(one.inside, two.inside), _unmatched(two.inside, one.inside)
    shared = len(mine) < len(one.inside)
    if not mine and not theirs:
        return algebra.TRUE if one.fill == two.fill or isnan(one.fill) or not shared else None
    nowhere = None if shared and one.fill != two.fill else _all_within((*mine, *theirs))
    everywhere = _equal_in_some_order(mine, theirs) if one.fill == two.fill else None
    found = [cond for cond in (nowhere, everywhere) if cond is not None]
    return algebra.any_of(found) if found else None


def covers_bounds(one: Data, two: Data) -> Cond:
    """A condition under which the first value is known at every element at which the second is known."""
    return algebra.all_of(
        algebra.any_of(
            (
                _all_within((bound,)),
                *(_equal_coordinates(bound, other) for other in two.loose if other.same_bound(bound)),
            )
        )
        for bound in _unmatched(one.loose, two.loose)
    )


def drop_implied_bounds(holds: Callable[[Cond], bool], one: Data, two: Data) -> tuple[Data, Data]:
    """Both values without those bounds that only one of them has and that hold for all elements."""
    mine, theirs = _unmatched(one.inside, two.inside), _unmatched(two.inside, one.inside)
    implied = {id(bound) for bound in (*mine, *theirs) if holds(_all_within((bound,)))}
    remaining = [tuple(bound for bound in each.inside if id(bound) not in implied) for each in (one, two)]
    return evolve(one, inside=remaining[0]), evolve(two, inside=remaining[1])


def drop_loop_bounds(holds: Callable[[Cond], bool], data: Data, loop: Loop) -> Data:
    """The value without bounds on the loop variable that are known to hold in every iteration."""
    inside = tuple(
        bound
        for bound in data.inside
        if loop.symbol not in symbols(*symbolic_parts(bound.coordinate)) or not holds(_all_within((bound,)))
    )
    return evolve(data, inside=inside)


def _unmatched(bounds: Sequence[Inside], others: Sequence[Inside]) -> tuple[Inside, ...]:
    """The bounds that are not syntactically equal to one of the others."""
    return tuple(
        b for b in bounds if not any(b.same_bound(o) and _equal_coordinates(b, o) is algebra.TRUE for o in others)
    )


def _equal_coordinates(one: Inside, two: Inside) -> Cond:
    return equal_indices(one.coordinate, two.coordinate)


def _all_within(bounds: Sequence[Inside]) -> Cond:
    """The condition that every element is within the bounds."""
    return algebra.all_of(bound.of(end) for bound in bounds for end in extremes(bound.coordinate))


def _equal_in_some_order(mine: Sequence[Inside], theirs: Sequence[Inside]) -> Cond | None:
    if len(mine) != len(theirs) or len(mine) > _MAX_PERMUTED:
        return None
    orders = (tuple(zip(mine, order, strict=True)) for order in permutations(theirs))
    pairs = [order for order in orders if all(a.same_bound(b) for a, b in order)]
    return (
        algebra.any_of(algebra.all_of(_equal_coordinates(a, b) for a, b in order) for order in pairs) if pairs else None
    )


def inherit_bounds(entry: Data, candidate: Data, loop: Loop) -> Data:
    """The value `candidate` with the bounds of the value on loop entry, if the loop body sets none.

    Requires exactly one record component that varies with the loop; the bounds are translated by that component's
    distance between entry and iteration.
    """
    moving = [name for name, part in candidate.record.items() if loop.symbol in symbols(*symbolic_parts(part))]
    if candidate.inside or not entry.inside or len(moving) != 1 or moving[0] not in entry.record:
        return candidate
    before, now = entry.record[moving[0]], candidate.record[moving[0]]
    translated = [_translate(bound.coordinate, before, now) for bound in entry.inside]
    inside = tuple(
        evolve(bound, coordinate=place)
        for bound, place in zip(entry.inside, translated, strict=True)
        if place is not None
    )
    return evolve(candidate, inside=inside, fill=entry.fill) if len(inside) == len(translated) else candidate


def _translate(place: FragmentIndex, before: FragmentIndex, now: FragmentIndex) -> FragmentIndex | None:
    """`now + (place - before)`; None if a coordinate is piecewise or the shapes differ."""
    if isinstance(place, Piecewise) or isinstance(before, Piecewise) or isinstance(now, Piecewise):
        return None
    if not place.table.shape == before.table.shape == now.table.shape:
        return None
    distance = algebra.sub(place.base, before.base)
    return separable(algebra.add(now.base, distance), now.table + (place.table - before.table))
