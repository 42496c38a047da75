"""Whether a value is at most a number wherever it has a value, by the shape of its expression.

Elements of tensors are numbers. What is shown of reals holds of a program's numbers up to their rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import frexp

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Sum, Symbol
from argus.core.values.expr import Choose, Compare, Expr, Fn, Infinity, Number, Reduce, fn, infinity
from argus.core.values.numbers import above_zero, at_least_zero, is_number
from argus.core.values.rewriting import bound_variables, free_symbols, own_integers, parts, substitute
from argus.core.walk import substitute as substitute_index
from argus.core.walk import symbols

Holds = Callable[[Cond], bool]
"""Whether a condition on integers provably holds."""
_NOTHING = infinity(-1)


def clamped(of: Expr, low: Expr, high: Expr, holds: Holds) -> Expr:
    """The least of `high` and the greatest of the value and `low`: the value itself where it provably lies between."""
    if isinstance(low, Number) and isinstance(high, Number) and is_between(of, low.value, high.value, holds):
        return of
    return fn("clamp", of, low, high)


def is_between(of: Expr, low: Fraction, high: Fraction, holds: Holds) -> bool:
    """Whether the value is neither below `low` nor above `high` wherever it has a value."""
    above = at_least_zero(of) if low <= 0 else None
    positive = above is not None and all(map(holds, above))
    return (positive or is_at_most(fn("neg", of), -low, holds)) and is_at_most(of, high, holds)


def is_at_most(of: Expr, limit: Fraction, holds: Holds) -> bool:
    """Whether the value is at most a number wherever it has a value, whatever the elements of tensors are."""
    match of:
        case Number(value=value):
            return value <= limit
        case Infinity(sign=sign):
            return sign < 0
        case Choose(then=then, other=other):
            return is_at_most(then, limit, holds) and is_at_most(other, limit, holds)
        case Fn(name="max", args=args):
            return all(is_at_most(each, limit, holds) for each in args)
        case Fn(name="min", args=args):
            return any(is_at_most(each, limit, holds) for each in args)
        case Fn(name="exp2", args=(a,)):
            return limit > 0 and is_at_most(a, _power_of_two(limit), holds)
        case Fn(name="exp", args=(a,)):
            return limit >= 1 and is_at_most(a, Fraction(0), holds)
        case Reduce(op="max", body=body):
            return is_at_most(body, limit, holds)
        case Fn(name="add" | "sub" | "neg" | "mul"):
            return _sum_is_at_most(of, limit, holds)
        case _:
            return False


def _power_of_two(limit: Fraction) -> Fraction:
    """The greatest n with 2^n at most the number, which is above 0."""
    n = frexp(float(limit))[1]
    return Fraction(next(each for each in (n, n - 1, n - 2) if Fraction(2) ** each <= limit))


@frozen
class _Term:
    """A part of a sum: a value times a number above 0, or 1 for None; it is subtracted if `taken`."""

    value: Expr
    scale: Expr | None
    taken: bool


def _sum_is_at_most(of: Expr, limit: Fraction, holds: Holds) -> bool:
    """Of terms that are added, and others that are taken away, of the same scale and at least as large, one each."""
    terms = list(_terms(of, taken=False))
    constant, left = Fraction(0), list[_Term]()
    for each in terms:
        if isinstance(each.value, Number) and each.scale is None:
            constant += -each.value.value if each.taken else each.value.value
        else:
            left.append(each)
    taken = [each for each in left if each.taken]
    for each in left:
        if not each.taken:
            match = next((t for t in taken if t.scale is each.scale and is_below(each.value, t.value, holds)), None)
            if match is None:
                return False
            taken.remove(match)
    return constant <= limit and all(at_least_zero(each.value) == () for each in taken)


def _terms(of: Expr, *, taken: bool) -> Iterator[_Term]:
    match of:
        case Fn(name="add", args=(a, b)):
            yield from _terms(a, taken=taken)
            yield from _terms(b, taken=taken)
        case Fn(name="sub", args=(a, b)):
            yield from _terms(a, taken=taken)
            yield from _terms(b, taken=not taken)
        case Fn(name="neg", args=(a,)):
            yield from _terms(a, taken=not taken)
        case Fn(name="mul", args=(a, b)):
            for value, factor in ((a, b), (b, a)):
                negative = isinstance(factor, Fn) and factor.name == "neg"
                scale = factor.args[0] if isinstance(factor, Fn) and negative else factor
                if _is_scale(scale):
                    yield _Term(value, scale, taken != negative)
                    return
            yield _Term(of, None, taken)
        case _:
            yield _Term(of, None, taken)


def _is_scale(of: Expr) -> bool:
    return is_number(of) and above_zero(of) == ()


def is_below(of: Expr, other: Expr, holds: Holds) -> bool:
    """Whether the value is at most the other one wherever both have values."""
    if of is other or of is _NOTHING:
        return True
    match other:
        case Fn(name="max", args=args):
            shown = any(is_below(of, each, holds) for each in args)
        case Fn(name="min", args=args):
            shown = all(is_below(of, each, holds) for each in args)
        case Choose(test=Compare(op="==", left=left, right=right), other=greatest) if (
            left is greatest and right is _NOTHING
        ):  # where that is -inf, the value is, too
            shown = is_below(of, greatest, holds)
        case Choose(then=then, other=otherwise):
            shown = is_below(of, then, holds) and is_below(of, otherwise, holds)
        case Reduce(op="max"):
            shown = any(_is_met(other, place, of, holds) for place in _places(other, of))
        case _:
            shown = False
    if shown:
        return True
    match of:
        case Fn(name="max", args=args):
            return all(is_below(each, other, holds) for each in args)
        case Fn(name="min", args=args):
            return any(is_below(each, other, holds) for each in args)
        case Choose(then=then, other=otherwise):
            return is_below(then, other, holds) and is_below(otherwise, other, holds)
        case _:
            return False


def _is_met(greatest: Reduce, place: Index, of: Expr, holds: Holds) -> bool:
    """Whether the value is that of a reduction's body at a place in its range."""
    at = {greatest.variable: place}
    if symbols(place) & (bound_variables(greatest.body) | {greatest.variable}):
        return False
    if substitute(greatest.body, at) is not of:
        return False
    inside = algebra.le(greatest.low, place), algebra.lt(place, greatest.high)
    return all(map(holds, (*inside, substitute_index(greatest.where, at))))


def _places(greatest: Reduce, of: Expr) -> Iterator[Index]:
    """Places where the body may be the value: where a coordinate that has the variable as a term is as in the value."""
    pairs, seen = [(greatest.body, of)], set[tuple[Expr, Expr]]()
    while pairs:
        pair = pairs.pop()
        body, found = pair
        if pair in seen or type(body) is not type(found) or greatest.variable not in free_symbols(body):
            continue
        seen.add(pair)
        for own, theirs in zip(own_integers(body)[0], own_integers(found)[0], strict=False):
            rest = _without(own, greatest.variable)
            if rest is not None:
                yield algebra.sub(theirs, rest)
        pairs += zip(parts(body), parts(found), strict=False)


def _without(index: Index, variable: Symbol) -> Index | None:
    """The rest of a sum that has the variable as a term; None of another expression."""
    own = algebra.sym(variable)
    if index is own:
        return algebra.const(0)
    one = isinstance(index, Sum) and any(term is own and factor == 1 for term, factor in index.terms)
    return algebra.sub(index, own) if one else None
