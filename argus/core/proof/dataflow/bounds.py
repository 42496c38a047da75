"""Bounds of two values compared, and bounds that a tile comes into a loop with told of any of its iterations.

Bounds say which elements are there: their order is of no weight, and a bound that holds of every element is none.
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

_MOST = 4
"""Bounds that are compared in every order."""


def equal_bounds(one: Data, two: Data) -> Cond | None:
    """The condition that two values have the same elements there, and one padding elsewhere; None if it has no form.

    Of padding that is some unknown number (`nan`) the first says nothing.
    """
    mine, theirs = _unmatched(one.inside, two.inside), _unmatched(two.inside, one.inside)
    shared = len(mine) < len(one.inside)
    if not mine and not theirs:
        return algebra.TRUE if one.fill == two.fill or isnan(one.fill) or not shared else None
    nowhere = None if shared and one.fill != two.fill else _no_padding((*mine, *theirs))
    everywhere = _in_some_order(mine, theirs) if one.fill == two.fill else None
    found = [cond for cond in (nowhere, everywhere) if cond is not None]
    return algebra.any_of(found) if found else None


def covers_bounds(one: Data, two: Data) -> Cond:
    """A condition under which the first says something of every element that the second says something of."""
    return algebra.all_of(
        algebra.any_of(
            (_no_padding((bound,)), *(_same(bound, other) for other in two.loose if other.same_bound(bound)))
        )
        for bound in _unmatched(one.loose, two.loose)
    )


def drop_implied_bounds(holds: Callable[[Cond], bool], one: Data, two: Data) -> tuple[Data, Data]:
    """Two values without the bounds of one alone that are known to hold of all elements."""
    mine, theirs = _unmatched(one.inside, two.inside), _unmatched(two.inside, one.inside)
    gone = {id(bound) for bound in (*mine, *theirs) if holds(_no_padding((bound,)))}
    kept = [tuple(bound for bound in each.inside if id(bound) not in gone) for each in (one, two)]
    return evolve(one, inside=kept[0]), evolve(two, inside=kept[1])


def drop_loop_bounds(holds: Callable[[Cond], bool], data: Data, loop: Loop) -> Data:
    """The same without bounds of the loop's variable that are known to hold in every iteration."""
    inside = tuple(
        bound
        for bound in data.inside
        if loop.symbol not in symbols(*symbolic_parts(bound.coordinate)) or not holds(_no_padding((bound,)))
    )
    return evolve(data, inside=inside)


def _unmatched(bounds: Sequence[Inside], others: Sequence[Inside]) -> tuple[Inside, ...]:
    """The bounds that are none of the others as they are written."""
    return tuple(b for b in bounds if not any(b.same_bound(o) and _same(b, o) is algebra.TRUE for o in others))


def _same(one: Inside, two: Inside) -> Cond:
    return equal_indices(one.coordinate, two.coordinate)


def _no_padding(bounds: Sequence[Inside]) -> Cond:
    """The condition that every element is within the bounds."""
    return algebra.all_of(bound.of(end) for bound in bounds for end in extremes(bound.coordinate))


def _in_some_order(mine: Sequence[Inside], theirs: Sequence[Inside]) -> Cond | None:
    if len(mine) != len(theirs) or len(mine) > _MOST:
        return None
    orders = (tuple(zip(mine, order, strict=True)) for order in permutations(theirs))
    pairs = [order for order in orders if all(a.same_bound(b) for a, b in order)]
    return algebra.any_of(algebra.all_of(_same(a, b) for a, b in order) for order in pairs) if pairs else None


def inherit_bounds(entry: Data, guess: Data, loop: Loop) -> Data:
    """A guess with the bounds that its tile comes into a loop with, where the loop's own assignments set none.

    The bounds are told by the name of the elements that alone moves with the loop, whichever the iteration.
    """
    moving = [name for name, part in guess.record.items() if loop.symbol in symbols(*symbolic_parts(part))]
    if guess.inside or not entry.inside or len(moving) != 1 or moving[0] not in entry.record:
        return guess
    before, now = entry.record[moving[0]], guess.record[moving[0]]
    moved = [_moved(bound.coordinate, before, now) for bound in entry.inside]
    inside = tuple(
        evolve(bound, coordinate=place) for bound, place in zip(entry.inside, moved, strict=True) if place is not None
    )
    return evolve(guess, inside=inside, fill=entry.fill) if len(inside) == len(moved) else guess


def _moved(place: FragmentIndex, before: FragmentIndex, now: FragmentIndex) -> FragmentIndex | None:
    """A coordinate as far from one number as it was from another; None if that differs from element to element."""
    if isinstance(place, Piecewise) or isinstance(before, Piecewise) or isinstance(now, Piecewise):
        return None
    if not place.table.shape == before.table.shape == now.table.shape:
        return None
    distance = algebra.sub(place.base, before.base)
    return separable(algebra.add(now.base, distance), now.table + (place.table - before.table))
