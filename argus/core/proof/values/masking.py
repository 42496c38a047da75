"""Masks by coordinates (I25): `where(condition on coordinates, element, number)`.

The condition becomes a bound of the value, like the edge of a load, so that reductions and products turn it into a
condition on the counted elements. Padding with another fill must lie outside the mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from attrs import evolve

from argus.core import algebra
from argus.core.index import And, Cmp, Cond, Symbol
from argus.core.ir import Both, Holds, Test
from argus.core.layout import TV
from argus.core.proof.dataflow.separable_index import Piecewise, numeric
from argus.core.proof.dataflow.separable_index import evaluate_separable as separated
from argus.core.proof.values.content import Data, Inside, Number, Top, Value, content_error, drop_padding
from argus.core.proof.values.recognisers.standing import Plain, Statistic
from argus.core.proof.values.recognisers.statistics import counted

_PLACE = Symbol("place", "fresh")


def mask_bounds(test: Test, layout: TV, thread: Symbol) -> tuple[Inside, ...] | None:
    """The bounds on a tile's elements given by a test on coordinates; None if it is not a conjunction of bounds."""
    found: list[Inside] = []
    for cond in _conditions(test):
        bound = _bound(cond, layout, thread)
        if bound is None:
            return None
        found.append(bound)
    return tuple(found)


def _conditions(test: Test) -> Iterator[Cond | None]:
    """The conjuncts of a test; None for one that is not a condition on coordinates."""
    match test:
        case Holds(cond=And(parts=parts)):
            yield from parts
        case Holds(cond=cond):
            yield cond
        case Both(parts=parts):
            for part in parts:
                yield from _conditions(part)
        case _:
            yield None


def _bound(cond: Cond | None, layout: TV, thread: Symbol) -> Inside | None:
    if not isinstance(cond, Cmp) or cond.op != "<=":
        return None
    shape = layout.threads.size(), layout.values.size()
    places = [numeric(np.broadcast_to(axis, shape)) for axis in layout.coordinates()]
    excess = separated(algebra.sub(cond.left, cond.right), places, thread, shape)
    return None if excess is None else Inside(excess, algebra.const(1), open=True)


def masked_value(holds: Callable[[Cond], bool], value: Value, bounds: tuple[Inside, ...], other: Value) -> Value:
    """The value of a tile that is `value` within the bounds and `other` elsewhere."""
    count = counted(value, bounds, other) if isinstance(value, Number) else None
    if count is not None:
        return count
    if not isinstance(value, Data):
        return Top(content_error(value))
    if not isinstance(other, Number):
        return Top("`where` between two elements has no rule in the verifier yet")
    if not isinstance(value.standing, Plain | Statistic):
        return Top(f"a mask of {value.form} has no rule in the verifier")
    value = evolve(value, terms=())
    inside = tuple(bound for bound in value.inside if not _implied(holds, bound, bounds))
    if inside and value.fill != other.value:
        # From here on, nothing is known about rows of padding.
        return evolve(drop_padding(evolve(value, inside=inside)), inside=bounds, fill=other.value)
    return evolve(value, inside=(*inside, *bounds), fill=other.value)


def _implied(holds: Callable[[Cond], bool], bound: Inside, bounds: tuple[Inside, ...]) -> bool:
    """Whether one conjunct of the mask implies a bound."""
    return any(_follows(holds, bound, each) for each in bounds)


def _follows(holds: Callable[[Cond], bool], bound: Inside, mask: Inside) -> bool:
    if isinstance(bound.coordinate, Piecewise) or isinstance(mask.coordinate, Piecewise):
        return False
    offset = bound.coordinate.table - mask.coordinate.table
    if not bool((offset == offset.flat[0]).all()):
        return False
    place = algebra.sym(_PLACE)
    mine = algebra.add(bound.coordinate.base, place, int(offset.flat[0]))
    theirs = algebra.add(mask.coordinate.base, place)
    below = algebra.implies(mask.of(theirs), algebra.lt(mine, bound.extent))
    return holds(below) and (bound.open or holds(algebra.le(0, bound.coordinate.least)))
