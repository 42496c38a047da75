"""Maxima over ranges that meet, or one within the other, are one."""

from __future__ import annotations

from argus.core import algebra
from argus.core.index import Bin, Index
from argus.core.values.atoms import (
    Greatest,
    greatest_atom,
)


def joined(a: Greatest, b: Greatest) -> list[Greatest]:
    """The atoms whose largest is that of both: one, where the ranges are one or meet."""
    if a.variable != b.variable or a.body is not b.body or a.where is not b.where:
        return [a, b]
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
    ends, starts = _flat(first.high, "min"), _flat(second.low, "max")
    limits, floors = set(_flat(second.high, "min")), set(_flat(first.low, "max"))
    for meet in ends & starts:
        if ends - {meet} <= limits and starts - {meet} <= floors:
            return first.low
    return None


def _flat(index: Index, op: str) -> set[Index]:
    if isinstance(index, Bin) and index.op == op:
        return _flat(index.left, op) | _flat(index.right, op)
    return {index}
