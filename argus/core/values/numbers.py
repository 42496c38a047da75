"""Where values are numbers: extrema over sets that may be empty are -inf there."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from argus.core import algebra
from argus.core.index import Cond
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Infinity, Number, Reduce, Whole, infinity
from argus.core.walk import substitute

_NOTHING = infinity(-1)
_WAYS = 24
_DEFINED = frozenset(("abs", "cos", "fma", "min", "relu", "sigmoid", "sin", "tanh"))
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
        case Fn(name="mul", args=(a, Number(value=value))) | Fn(name="mul", args=(Number(value=value), a)) if value > 0:
            return number_where(a)
        case Fn(name="div", args=(a, Number(value=value))) if value > 0:
            return number_where(a)
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
