"""Runs of numbers, one for each value of a bound variable, that are one run because each begins where another ends."""

from __future__ import annotations

from attrs import evolve

from argus.core import algebra
from argus.core.index import Index
from argus.core.proof.values.named_parts import Binder, Part
from argus.core.proof.values.ties import Holds
from argus.core.walk import substitute, symbols


def joined_runs(part: Part, holds: Holds) -> Part:
    """The same part with nested ranges joined into one where that is known to have the same numbers.

    The run of z has the tags [low(z), high(z)) where low(z) <= high(z) = low(z + 1), and there is a first z.
    """
    for outer in part.binders:
        for inner in part.binders:
            found = _joined(part, outer, inner, holds)
            if found is not None:
                return joined_runs(found, holds)
    return part


def _joined(part: Part, outer: Binder, inner: Binder, holds: Holds) -> Part | None:
    z, x = outer.variable, inner.variable
    rest = [each for each in part.binders if each not in (outer, inner)]
    ends = (end for each in rest for end in (each.low, each.high, each.where))
    if z == x or outer.where is not algebra.TRUE or z not in symbols(part.value) or {z, x} & symbols(*ends):
        return None
    if x in symbols(outer.low, outer.high) or symbols(outer.low, outer.high) & part.bound:
        return None
    first = substitute(part.value, {x: algebra.const(0), z: outer.low})
    offset = algebra.sub(substitute(part.value, {x: algebra.const(0)}), first)  # by how much the run of z is moved
    own = algebra.sub(algebra.sym(x), offset)
    value = substitute(part.value, {x: own})
    guards = tuple(substitute(cond, {x: own}) for cond in part.guards)
    where = substitute(inner.where, {x: own})
    if z in symbols(value, where, *guards) or symbols(offset) & (part.bound - {z}):
        return None
    low, high = algebra.add(inner.low, offset), algebra.add(inner.high, offset)
    if not _adjacent(outer, low, high, holds):
        return None
    last = substitute(high, {z: algebra.sub(outer.high, 1)})
    run = Binder(x, substitute(low, {z: outer.low}), last, where)
    return evolve(part, value=value, guards=guards, binders=(*rest, run))


def _adjacent(outer: Binder, low: Index, high: Index, holds: Holds) -> bool:
    """Whether the runs of all values of a variable follow each other without a gap."""
    z = algebra.sym(outer.variable)
    here = (algebra.le(outer.low, z), algebra.lt(z, outer.high))
    following = substitute(low, {outer.variable: algebra.add(z, 1)})
    return (
        holds((), algebra.lt(outer.low, outer.high))
        and holds(here, algebra.le(low, high))
        and holds((*here, algebra.lt(algebra.add(z, 1), outer.high)), algebra.eq(high, following))
    )
