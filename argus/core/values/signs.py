"""What the shape of an expression tells about its sign: conditions on integers under which it holds, or None."""

from __future__ import annotations

from argus.core import algebra
from argus.core.index import Cond
from argus.core.values.expr import Choose, Expr, Fn, Number, Reduce, Whole
from argus.core.values.numbers import number_where
from argus.core.walk import substitute

Conds = tuple[Cond, ...] | None


def _both(a: Conds, b: Conds) -> Conds:
    return None if a is None or b is None else (*a, *b)


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
            ways = [_both(above_zero(a), at_least_zero(b)), _both(at_least_zero(a), above_zero(b))]
            known = [algebra.all_of(way) for way in ways if way is not None]
            return (algebra.any_of(known),) if known else None
        case Fn(name="mul" | "div", args=(a, b)):
            return _both(above_zero(a), above_zero(b))
        case Fn(name="pow" | "sqrt" | "reciprocal", args=(a, *_)):
            return above_zero(a)
        case Choose(then=then, other=other):
            return _both(above_zero(then), above_zero(other))
        case Reduce(op="sum", low=low, high=high, where=where, body=body):
            inner, rest = above_zero(body), at_least_zero(body)
            if inner is None or rest is None or any(each is not algebra.TRUE for each in rest):
                return None
            there = algebra.all_of((algebra.lt(low, high), where, *inner))
            ends = (substitute(there, {of.variable: end}) for end in (low, algebra.sub(high, 1)))
            return (algebra.any_of(tuple(ends)),)
        case _:
            return None


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
            return _both(at_least_zero(a), at_least_zero(b))
        case Fn(name="div", args=(a, b)):
            return _both(at_least_zero(a), above_zero(b))
        case Choose(then=then, other=other):
            return _both(at_least_zero(then), at_least_zero(other))
        case Reduce(op="sum" | "product", body=body):
            inner = at_least_zero(body)
            return () if inner is not None and all(c is algebra.TRUE for c in inner) else None
        case _:
            return above_zero(of)


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
        case Fn(name="mul", args=(a, Number(value=value))) | Fn(name="mul", args=(Number(value=value), a)) if value > 0:
            return _above_nothing(a)
        case Fn(name="add", args=(a, b)):
            return _both(_above_nothing(a), _above_nothing(b))
        case _:
            return None


def _is_below_infinity(of: Expr) -> bool:
    """Whether the value is not +inf, wherever it is defined."""
    if number_where(of) is not None:
        return True
    match of:
        case Fn(name="log" | "log2", args=(a,)):
            return _is_below_infinity(a)
        case Fn(name="add" | "max", args=args):
            return all(map(_is_below_infinity, args))
        case Fn(name="mul", args=(a, Number(value=value))) | Fn(name="mul", args=(Number(value=value), a)):
            return value > 0 and _is_below_infinity(a)
        case Reduce(op="max", body=body):
            return _is_below_infinity(body)
        case _:
            return False
