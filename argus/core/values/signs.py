"""What the shape of an expression tells about its sign: conditions on integers under which it holds, or None."""

from __future__ import annotations

from argus.core import algebra
from argus.core.index import Cond
from argus.core.values.expr import Choose, Expr, Fn, Number, Reduce, Whole

Conds = tuple[Cond, ...] | None


def _both(a: Conds, b: Conds) -> Conds:
    return None if a is None or b is None else (*a, *b)


def _open(conds: tuple[Cond, ...]) -> int:
    return sum(cond is not algebra.TRUE for cond in conds)


def above_zero(of: Expr) -> Conds:
    """Conditions under which the value is above 0, wherever it is defined."""
    match of:
        case Number(value=value):
            return () if value > 0 else None
        case Whole(index=index):
            return (algebra.lt(0, index),)
        case Fn(name="exp" | "exp2" | "sigmoid" | "rsqrt"):
            return ()
        case Fn(name="add", args=(a, b)):
            ways = [_both(above_zero(a), at_least_zero(b)), _both(at_least_zero(a), above_zero(b))]
            return min((way for way in ways if way is not None), key=_open, default=None)
        case Fn(name="mul" | "div", args=(a, b)):
            return _both(above_zero(a), above_zero(b))
        case Fn(name="pow" | "sqrt" | "reciprocal", args=(a, *_)):
            return above_zero(a)
        case Choose(then=then, other=other):
            return _both(above_zero(then), above_zero(other))
        case Reduce(op="sum", low=low, high=high, where=algebra.TRUE, body=body):
            inner = above_zero(body)
            return (algebra.lt(low, high),) if inner is not None and all(c is algebra.TRUE for c in inner) else None
        case _:
            return None


def at_least_zero(of: Expr) -> Conds:
    """Conditions under which the value is at least 0, wherever it is defined."""
    match of:
        case Number(value=value):
            return () if value >= 0 else None
        case Whole(index=index):
            return (algebra.le(0, index),)
        case Fn(name="abs" | "relu" | "sqrt"):
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
