"""Which infinities a value may be, whatever the elements of tensors are, wherever it has a value.

Elements are numbers. A value that is computed from what has none (inf - inf, a division by 0) has none either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from argus.core import algebra
from argus.core.index import Cond
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Infinity, Number, Reduce, Whole, infinity
from argus.core.values.numbers import above_zero, number_where, unscaled

Signs = frozenset[int]
"""1 for inf, -1 for -inf."""

_NONE: Signs = frozenset()
_BOTH: Signs = frozenset((-1, 1))
_BELOW: Signs = frozenset((-1,))
_ABOVE: Signs = frozenset((1,))
_BOUNDED = frozenset(("cos", "erf", "philox", "sigmoid", "sign", "sin", "tanh"))
_NOTHING = infinity(-1)
Holds = Callable[[Cond], bool]
"""Whether a condition on integers provably holds."""


def infinities(root: Expr, holds: Holds) -> Signs:
    """The infinities that the value may be; empty where it is a number wherever it has a value."""
    done: dict[Expr, Signs] = {}

    def visit(of: Expr) -> Signs:
        if of not in done:
            ways = number_where(of)
            known = ways is not None and (algebra.TRUE in ways or (bool(ways) and holds(algebra.any_of(ways))))
            done[of] = _NONE if known else _BELOW if ways is not None else _of(of, visit, holds)
        return done[of]

    return visit(root)


def _of(of: Expr, visit: Callable[[Expr], Signs], holds: Holds) -> Signs:
    match of:
        case Number() | Whole() | Element():
            return _NONE
        case Infinity(sign=sign):
            return frozenset((sign,))
        case Choose(test=Compare(op="==", left=left, right=right), then=then, other=other) if (
            left is other and right is _NOTHING
        ):
            return visit(then) | (visit(other) - _BELOW)
        case Choose(then=then, other=other):
            return visit(then) | visit(other)
        case Reduce(op="sum", body=body):
            return visit(body)
        case Reduce(op="product", body=body):
            return _BOTH if visit(body) else _NONE
        case Reduce(op="max", body=body):
            return visit(body) | _BELOW  # of no element
        case Reduce(body=body):
            return visit(body) | _ABOVE
        case Fn(name=name, args=args):
            return _computed(of, name, args, visit, holds)
        case _:
            return _BOTH


def _computed(of: Fn, name: str, args: tuple[Expr, ...], visit: Callable[[Expr], Signs], holds: Holds) -> Signs:
    signs = [visit(each) for each in args]
    every = _any_of(signs)
    match name:
        case _ if name in _BOUNDED:
            return _NONE
        case "exp" | "exp2" | "relu":
            return every & _ABOVE
        case "abs":
            return _ABOVE if every else _NONE
        case "add":
            return every
        case "neg":
            return _turned(every)
        case "sub":
            return signs[0] | _turned(signs[1])
        case "max":
            return (every & _ABOVE) | (signs[0] & signs[1])
        case "min":
            return (every & _BELOW) | (signs[0] & signs[1])
        case "log" | "log2":
            above = above_zero(args[0])
            return (every & _ABOVE) | (_NONE if above is not None and all(map(holds, above)) else _BELOW)
        case "mul" | "div" if (scaled := unscaled(of)) is not None:
            return visit(scaled)
        case "div":
            return _BOTH if signs[0] else _NONE
        case _:
            return _BOTH if every else _NONE


def _any_of(signs: Iterable[Signs]) -> Signs:
    return _NONE.union(*signs)


def _turned(signs: Signs) -> Signs:
    return frozenset(-sign for sign in signs)
