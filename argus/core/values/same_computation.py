"""Whether numbers are extrema and choices of what one formula computes: floats order these as they are."""

from __future__ import annotations

from functools import lru_cache

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Infinity, Number, Reduce, Whole, element, reduce_
from argus.core.values.rewriting import map_parts

_ORDERED = frozenset(("max", "min"))
_ANY = Symbol("any", "fresh")


def compares_one_computation(one: Expr, two: Expr) -> bool:
    """Whether both numbers are extrema, or choices, of numbers of one formula, besides constants.

    As a score and the greatest of all scores: which of two numbers is greater does not depend on how they are rounded.
    """
    return len(_computations(one) | _computations(two)) == 1


@lru_cache(maxsize=1 << 12)
def _computations(of: Expr) -> frozenset[Expr]:
    """The formulas of which a number is an extremum or a choice, without the places of their elements."""
    match of:
        case Fn(name=name, args=args) if name in _ORDERED:
            return frozenset[Expr]().union(*map(_computations, args))
        case Choose(then=then, other=other):
            return _computations(then) | _computations(other)
        case Reduce(op="max" | "min", body=body):
            return _computations(body)
        case Number() | Infinity():
            return frozenset()
        case Fn() | Reduce() | Element() | Whole():
            return frozenset((_anywhere(of),))


@lru_cache(maxsize=1 << 12)
def _anywhere(of: Expr) -> Expr:
    match of:
        case Element(tensor=tensor):
            return element(tensor)
        case Reduce(op=op, body=body):
            return reduce_(op, _ANY, 0, 0, _anywhere(body), algebra.TRUE)
        case Choose(test=test, then=then, other=Number() | Infinity()) if not isinstance(test, Compare):
            return _anywhere(then)  # else the padding beyond a tensor's end
        case _:
            return map_parts(of, _anywhere, lambda index: index, lambda cond: cond)
