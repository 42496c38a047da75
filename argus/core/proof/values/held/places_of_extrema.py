"""Places of extrema as integers, which have no infinity: a great number stands for a place that there is not."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from argus.core import algebra
from argus.core.dtype import DType
from argus.core.index import Const
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.held.folds import Range, reduction
from argus.core.proof.values.held.rounded_integers import unrounded
from argus.core.proof.values.held.whole_numbers import whole_numbers
from argus.core.values.expr import Choose, Expr, Fn, Infinity, Number, Reduce, Whole, choose, fn, infinity, reduce_
from argus.core.values.formula_text import extremum_whose_place
from argus.core.values.numbers import ROUNDED, is_number

_LEAST = Fraction(1 << 20)
"""Numbers from here on may stand for no place."""
_MOST = {"to i8": (1 << 7) - 1, "to i32": 1 << 24, "to i64": 1 << 24}
"""The greatest integer that f32 and the type of a conversion have all integers up to."""


def as_integers(value: Expr, wanted: Expr, known: Known, rounded: Iterable[DType]) -> Expr | None:
    """A value that equals the wanted one only if the stored one does; None if there is none of these kinds.

    rounded: the types to which values are rounded on the way.
    """
    if isinstance(value, Fn) and value.name in _MOST:
        (inner,) = value.args
        most = min(_MOST[value.name], whole_numbers(rounded))
        return unrounded(inner, most) if _is_chosen(inner) and _is_whole(wanted, most, known) else None
    if not isinstance(wanted, Reduce) or not _is_place(wanted, known):
        return None
    return _without_greatest(value, wanted, known)


def _is_place(of: Reduce, known: Known) -> bool:
    """Whether it is the lowest place of an extremum of numbers that are there."""
    top = extremum_whose_place(of)
    there = of.where is algebra.TRUE and known.holds(algebra.lt(of.low, of.high))
    return there and top is not None and is_number(top.body)


def _is_whole(of: Expr, most: int, known: Known) -> bool:
    """Whether a value is an integer of at most this size."""
    match of:
        case Number(value=value):
            return value.denominator == 1 and abs(value) <= most
        case Choose(then=one, other=other) | Fn(name="max" | "min", args=(one, other)):
            return _is_whole(one, most, known) and _is_whole(other, most, known)
        case Reduce(op="max" | "min") if _is_place(of, known):
            return known.holds(algebra.all_of((algebra.le(-most, of.low), algebra.le(of.high, most))))
        case Reduce(op="max" | "min", where=algebra.TRUE, body=body):
            return known.holds(algebra.lt(of.low, of.high)) and _is_whole(body, most, known)
        case _:
            return False


def _is_chosen(of: Expr) -> bool:
    """Whether a value is one of some integers or infinities, chosen by tests, minima and maxima, and none is computed.

    Such a choice is that of the rounded numbers, as rounding to f32 keeps their order; what f32 has is not rounded.
    """
    match of:
        case Number(value=value):
            return value.denominator == 1
        case Whole() | Infinity():
            return True
        case Fn(name=name, args=(one,)) if name.startswith(ROUNDED):
            return _is_chosen(one)
        case Choose(then=one, other=other) | Fn(name="max" | "min", args=(one, other)):
            return _is_chosen(one) and _is_chosen(other)
        case Reduce(op="max" | "min", body=body):
            return _is_chosen(body)
        case _:
            return False


def _without_greatest(value: Expr, wanted: Reduce, known: Known) -> Expr | None:
    """The value with +inf for its greatest number.

    Minima and choices of integers are at most what they are with +inf for a number B, and no less than the smaller of
    that and B. So they are what is wanted if that is what they are with +inf, and at most B: the lowest place of an
    extremum, which has one as its range is not empty.
    """
    greatest = _greatest(value)
    if greatest is None or greatest < _LEAST or not known.holds(algebra.le(wanted.high, int(greatest))):
        return None
    return _with_infinity(value, greatest)


def _greatest(of: Expr) -> Fraction | None:
    """The greatest number among what minima choose from; None if the value is computed in another way."""
    match of:
        case Number(value=value) if value.denominator == 1:
            return value
        case Whole():
            return Fraction(0)
        case Choose(then=one, other=other) | Fn(name="min", args=(one, other)):
            parts = _greatest(one), _greatest(other)
            return None if parts[0] is None or parts[1] is None else max(parts[0], parts[1])
        case Reduce(op="min", body=body):
            return _greatest(body)
        case _:
            return None


def _with_infinity(of: Expr, greatest: Fraction) -> Expr:
    match of:
        case Number(value=value) if value == greatest:
            return infinity(1)
        case Choose(test=test, then=then, other=other):
            return choose(test, _with_infinity(then, greatest), _with_infinity(other, greatest))
        case Fn(args=(one, other)):
            left, right = _with_infinity(one, greatest), _with_infinity(other, greatest)
            return right if left is infinity(1) else left if right is infinity(1) else fn("min", left, right)
        case Reduce(op="min", variable=variable, low=Const(value=0), high=high, where=algebra.TRUE, body=body):
            # joined with those within it, which minima with the number stood between
            return reduction("min", [Range(variable, high)], _with_infinity(body, greatest))
        case Reduce(op=op, variable=variable, low=low, high=high, where=where, body=body):
            return reduce_(op, variable, low, high, _with_infinity(body, greatest), where)
        case _:
            return of
