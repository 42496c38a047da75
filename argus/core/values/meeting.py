"""Maxima over ranges that meet, or one within the other, are one."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.values import polynomial as polys
from argus.core.values.atoms import (
    Greatest,
    Poly,
    greatest_atom,
)
from argus.core.values.ends import at_most, clipped, operands
from argus.core.values.ends import end as tidy
from argus.core.walk import substitute, symbols


def joined(a: Greatest, b: Greatest) -> list[Greatest]:
    """The atoms whose largest is that of both: one, where the ranges are one or meet."""
    if a.variable != b.variable or a.body is not b.body:
        return [a, b]
    if a.where is not b.where:
        either = polys.sub(polys.add(a.where, b.where), polys.mul(a.where, b.where))
        same = a.low is b.low and a.high is b.high
        return [greatest_atom(a.variable, a.low, a.high, either, a.body)] if same else [a, b]
    if a.low is b.low and a.high is b.high:
        return [a]
    for first, second in ((a, b), (b, a)):
        if (low := _meeting(first, second)) is not None:
            return [greatest_atom(a.variable, low, second.high, a.where, a.body)]
        inside = algebra.all_of((algebra.le(first.low, second.low), algebra.le(second.high, first.high)))
        if inside is algebra.TRUE:
            return [first]
    return [a, b]


def _meeting(first: Greatest, second: Greatest) -> Index | None:
    """The low end of the union, if the second range starts where the first ends; both lie within the same limits.

    The first is [max(x, W), min(a, E)), the second [max(a, W), min(b, E, ..)), with x <= a <= b as the caller states.
    """
    if first.high is second.low:
        return first.low
    ends, starts = operands(first.high, "min"), operands(second.low, "max")
    limits, floors = set(operands(second.high, "min")), set(operands(first.low, "max"))
    for meet in ends & starts:
        if ends - {meet} <= limits and starts - {meet} <= floors:
            return first.low
    return None


def neighbours(of: Greatest) -> Iterator[tuple[Index, Index, Index]]:
    """(place, low, high): the places next to the range, each with the range that has it too."""
    before = algebra.sub(of.low, 1)
    yield before, before, of.high
    yield of.high, of.low, algebra.add(of.high, 1)


def over_iterations(variable: Symbol, low: Index, high: Index, inner: Greatest) -> tuple[Index, Index] | None:
    """The ends of the union of inner ranges over the iterations [low, high), if each starts where the last one ends."""
    if variable in inner.body.free | inner.where.free:
        return None
    start, end = clipped(inner.low, inner.high)
    after = tidy(substitute(start, {variable: algebra.add(algebra.sym(variable), 1)}))
    if tidy(end) is not after or not at_most(start, end):
        return None
    return substitute(start, {variable: low}), substitute(start, {variable: high})


def before(variable: Symbol, low: Index, high: Index, body: Poly) -> tuple[Greatest, Fraction] | None:
    """The only maximum in the body, if its set is free of the variable and comes before [low, high) in their order.

    The order is that of how many numbers there are: where a range starts depends on which variable is bound first.
    """
    found = polys.greatest_in(body)
    if len(found) != 1 or found[0][1] <= 0:
        return None
    atom, factor = found[0]
    if variable in symbols(atom.low, atom.high) | atom.where.free:
        return None
    own, other = algebra.sub(atom.high, atom.low), algebra.sub(high, low)
    return (atom, factor) if own.digest < other.digest else None
