"""What the shape of an expression tells of its value: where it is a number, and its sign.

Extrema over sets that may be empty are -inf there.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from argus.core import algebra
from argus.core.index import Cond
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Infinity, Number, Reduce, Whole, infinity
from argus.core.walk import substitute
from argus.core.wrapping import BITS

ROUNDED = "rounded to "
"""Begins the name of the function that rounds to a type of floats, whose name follows."""
_NOTHING = infinity(-1)
_WAYS = 24
_DEFINED = frozenset(
    (
        "abs",
        "ceil",
        "cos",
        "erf",
        "floor",
        "min",
        "philox",
        "relu",
        "round",
        "round_bf16",
        f"{ROUNDED}bf16",
        f"{ROUNDED}f32",
        "sigmoid",
        "sign",
        "sin",
        "tanh",
        *BITS,
    )
)
"""Functions that are numbers for all numbers, besides those that are looked at one by one."""
Ways = tuple[Cond, ...] | None
"""Conditions under each of which a value is a number, and outside of which it may be -inf; None: it may be neither."""


@lru_cache(maxsize=1 << 13)
def number_where(of: Expr) -> Ways:
    """Where the value is a number, whatever the elements of tensors are."""
    match of:
        case Number() | Whole() | Element():
            return (algebra.TRUE,)
        case Infinity(sign=sign):
            return () if sign < 0 else None
        case Choose(test=Compare(op="==", left=left, right=right), then=then, other=other) if (
            left is other and right is _NOTHING
        ):
            return number_where(then) if number_where(other) is not None else None
        case Choose(test=Compare(), then=then, other=other):
            return _both(number_where(then), number_where(other))
        case Choose(test=test, then=then, other=other):
            assert not isinstance(test, Compare)
            if is_number(then) and is_number(other):
                return (algebra.TRUE,)
            return _either(_under(test, number_where(then)), _under(algebra.negate(test), number_where(other)))
        case Reduce(op="max", variable=variable, low=low, high=high, where=where, body=body):
            inner = _under(algebra.all_of((algebra.lt(low, high), where)), number_where(body))
            if inner is None:
                return None
            ends = low, algebra.sub(high, 1)
            return _bounded(tuple(substitute(cond, {variable: end}) for end in ends for cond in inner))
        case Reduce(op="sum" | "product", body=body):
            return (algebra.TRUE,) if is_number(body) else None
        case Fn(name="max", args=(a, b)):
            return _either(number_where(a), number_where(b))
        case Fn(name="add", args=(a, b)):
            return _both(number_where(a), number_where(b))
        case Fn(name="sub", args=(a, b)):
            return number_where(a) if is_number(b) else None
        case Fn(name="mul" | "div") if (scaled := unscaled(of)) is not None:
            return number_where(scaled)
        case Fn(name="exp" | "exp2", args=(a,)):
            return None if number_where(a) is None else (algebra.TRUE,)
        case Fn(name="neg" | "mul", args=args):
            return (algebra.TRUE,) if all(map(is_number, args)) else None
        case Fn(name=name, args=args) if name in _DEFINED:
            return (algebra.TRUE,) if all(map(is_number, args)) else None
        case _:
            return None


def is_number(of: Expr) -> bool:
    """Whether the value is a number, whatever the elements of tensors are."""
    return algebra.TRUE in (number_where(of) or ())


def unscaled(of: Expr) -> Expr | None:
    """x, of x times a number above 0 or divided by one; None of another value. x is infinite where the value is."""
    match of:
        case Fn(name="mul", args=(a, b)):
            return a if _is_scale(b) else b if _is_scale(a) else None
        case Fn(name="div", args=(a, b)):
            return a if _is_scale(b) else None
        case _:
            return None


@lru_cache(maxsize=1 << 13)
def _is_scale(of: Expr) -> bool:
    """Whether the value is a number above 0."""
    return is_number(of) and above_zero(of) == ()


def _under(cond: Cond, ways: Ways) -> Ways:
    return None if ways is None else tuple(algebra.all_of((cond, way)) for way in ways)


def _either(a: Ways, b: Ways) -> Ways:
    return None if a is None or b is None else _bounded((*a, *b))


def _both(a: Ways, b: Ways) -> Ways:
    return None if a is None or b is None else _bounded(tuple(algebra.all_of(pair) for pair in product(a, b)))


def _bounded(ways: tuple[Cond, ...]) -> tuple[Cond, ...]:
    """Fewer ways are still ways."""
    if algebra.TRUE in ways:
        return (algebra.TRUE,)
    return tuple(dict.fromkeys(way for way in ways if way is not algebra.FALSE))[:_WAYS]


# -- signs ---------------------------------------------------------------------------------------------------

Conds = tuple[Cond, ...] | None
"""Conditions on integers under which a sign is known; None: not by the shape."""


def _and(a: Conds, b: Conds) -> Conds:
    return None if a is None or b is None else tuple(dict.fromkeys((*a, *b)))


@lru_cache(maxsize=1 << 13)
def above_zero(of: Expr) -> Conds:
    """Conditions under which the value is above 0, wherever it is defined."""
    match of:
        case Number(value=value):
            return () if value > 0 else None
        case Whole(index=index):
            return (algebra.lt(0, index),)
        case Fn(name="exp" | "exp2", args=(a,)):
            return _above_nothing(a)
        case Fn(name="sigmoid" | "rsqrt"):
            return ()
        case Fn(name="add", args=(a, b)):
            ways = [_and(above_zero(a), at_least_zero(b)), _and(at_least_zero(a), above_zero(b))]
            known = [algebra.all_of(way) for way in ways if way is not None]
            return (algebra.any_of(known),) if known else None
        case Fn(name="mul" | "div", args=(a, b)):
            return _and(above_zero(a), above_zero(b))
        case Fn(name="pow" | "sqrt" | "reciprocal", args=(a, *_)):
            return above_zero(a)
        case Fn(name="max", args=(a, b)):
            return min((each for each in map(above_zero, (a, b)) if each is not None), key=len, default=None)
        case Choose(then=then, other=other) | Fn(name="min", args=(then, other)):
            return _and(above_zero(then), above_zero(other))
        case Reduce(op="sum", low=low, high=high, where=where, body=body):
            inner, rest = above_zero(body), at_least_zero(body)
            if inner is None or rest is None or any(each is not algebra.TRUE for each in rest):
                return None
            there = algebra.all_of((algebra.lt(low, high), where, *inner))
            ends = (substitute(there, {of.variable: end}) for end in (low, algebra.sub(high, 1)))
            return (algebra.any_of(tuple(ends)),)
        case _:
            return None


@lru_cache(maxsize=1 << 13)
def at_least_zero(of: Expr) -> Conds:
    """Conditions under which the value is at least 0, wherever it is defined."""
    match of:
        case Number(value=value):
            return () if value >= 0 else None
        case Whole(index=index):
            return (algebra.le(0, index),)
        case Fn(name="abs" | "relu" | "sqrt" | "exp" | "exp2"):
            return ()
        case Fn(name="mul", args=(a, b)) if a is b:
            return ()
        case Fn(name="add" | "mul", args=(a, b)):
            return _and(at_least_zero(a), at_least_zero(b))
        case Fn(name="div", args=(a, b)):
            return _and(at_least_zero(a), above_zero(b))
        case Choose(then=then, other=other):
            return _and(at_least_zero(then), at_least_zero(other))
        case Reduce(op="sum" | "product", body=body):
            inner = at_least_zero(body)
            return () if inner is not None and all(c is algebra.TRUE for c in inner) else None
        case _:
            return above_zero(of)


@lru_cache(maxsize=1 << 13)
def _above_nothing(of: Expr) -> Conds:
    """Conditions under which the value is not -inf, wherever it is defined."""
    ways = number_where(of)
    if ways is not None:
        return () if algebra.TRUE in ways else (algebra.any_of(ways),) if ways else None
    match of:
        case Fn(name="log" | "log2", args=(a,)):
            return above_zero(a)
        case Fn(name="max", args=(a, b)):
            return min((each for each in map(_above_nothing, (a, b)) if each is not None), key=len, default=None)
        case Fn(name="sub", args=(a, b)) if _is_below_infinity(b):
            return _above_nothing(a)
        case Fn(name="neg", args=(a,)) if number_where(a) is not None:
            return ()
        case Fn(name="mul" | "div") if (scaled := unscaled(of)) is not None:
            return _above_nothing(scaled)
        case Fn(name="add", args=(a, b)):
            return _and(_above_nothing(a), _above_nothing(b))
        case _:
            return None


@lru_cache(maxsize=1 << 13)
def _is_below_infinity(of: Expr) -> bool:
    """Whether the value is not +inf, wherever it is defined."""
    if number_where(of) is not None:
        return True
    match of:
        case Fn(name="log" | "log2", args=(a,)):
            return _is_below_infinity(a)
        case Fn(name="add" | "max", args=args):
            return all(map(_is_below_infinity, args))
        case Fn(name="mul" | "div") if (scaled := unscaled(of)) is not None:
            return _is_below_infinity(scaled)
        case Reduce(op="max", body=body):
            return _is_below_infinity(body)
        case _:
            return False
