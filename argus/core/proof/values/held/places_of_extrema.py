"""Places of extrema as integers, which have no infinity: a great number stands for a place that there is not."""

from __future__ import annotations

from fractions import Fraction

from argus.core import algebra
from argus.core.proof.values.held.facts import Known
from argus.core.values.expr import Choose, Expr, Fn, Infinity, Number, Reduce, Whole, choose, fn, infinity, reduce_
from argus.core.values.formula_text import extremum_whose_place
from argus.core.values.numbers import is_number

_LEAST = Fraction(1 << 20)
"""Numbers from here on may stand for no place."""
_CONVERTED = ("to i32", "to i64")
_WHOLE = 1 << 24
"""f32 has all integers up to here."""


def as_places(value: Expr, wanted: Expr, known: Known) -> Expr | None:
    """A value that equals the wanted place of an extremum if the stored one does; None for values of other kinds."""
    if not isinstance(wanted, Reduce) or wanted.where is not algebra.TRUE:
        return None
    top = extremum_whose_place(wanted)
    if top is None or not is_number(top.body) or not known.holds(algebra.lt(wanted.low, wanted.high)):
        return None
    if isinstance(value, Fn) and value.name in _CONVERTED:
        return _converted(value, wanted, known)
    return _without_greatest(value, wanted, known)


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


def _converted(value: Fn, wanted: Reduce, known: Known) -> Expr | None:
    """What is converted from f32 to an integer: minima and choices of integers, none of them computed.

    Those up to 2^24 are what f32 has of them, and greater ones round to none below. So does +inf, where no place is.
    """
    (inner,) = value.args
    fits = algebra.all_of((algebra.le(-_WHOLE, wanted.low), algebra.le(wanted.high, _WHOLE)))
    return inner if _greatest(inner) is not None and known.holds(fits) else None


def _greatest(of: Expr) -> Fraction | None:
    """The greatest number among what minima choose from; None if the value is computed in another way."""
    match of:
        case Number(value=value) if value.denominator == 1:
            return value
        case Whole() | Infinity(sign=1):
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
        case Reduce(op=op, variable=variable, low=low, high=high, where=where, body=body):
            return reduce_(op, variable, low, high, _with_infinity(body, greatest), where)
        case _:
            return of
