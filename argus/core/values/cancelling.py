"""Tests in which numbers cancel: over the reals x + 1 > x always holds, in floats only where x is small.

Rounding may decide any test of computed numbers, but mostly next to the place where it changes. Where both sides of a
test, or both operands of a sum in it, contain the same element, what is left of them over the reals may be nothing but
rounding in floats. Such a test becomes one of an unknown function of its sides.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Infinity,
    Number,
    Reduce,
    Whole,
    choose,
    compare,
    expr,
    fn,
)
from argus.core.values.rewriting import map_parts, nodes

IN_FLOATS = "in floats"
"""The unknown function: the difference of two sides, or a number, as floats have it."""
_EXACT = frozenset(("abs", "ceil", "floor", "max", "min", "neg", "relu", "round", "round_bf16", "sign"))
"""Functions whose results floats have if they have the arguments."""
_STEPS = frozenset(("ceil", "floor", "round", "sign"))
_MOST = 1 << 9
"""The most parts of a side that is looked at."""
_ZERO = expr(0)


def with_tests_in_floats(root: Expr) -> Expr:
    """The expression with tests, and steps to integers, in which numbers cancel as those of an unknown number."""
    if not any(_decides(node) for node in nodes(root)):
        return root
    known: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node not in known:
            known[node] = _in_floats(map_parts(node, visit, lambda index: index, lambda cond: cond))
        return known[node]

    return visit(root)


def _decides(node: Expr) -> bool:
    match node:
        case Choose(test=Compare(left=left, right=right)):
            return _cancels_between(left, right)
        case Fn(name=name, args=(one,)):
            return _is_step(name) and _cancels(one)
        case _:
            return False


def _is_step(name: str) -> bool:
    return name in _STEPS or name.startswith("to ")


def _in_floats(node: Expr) -> Expr:
    match node:
        case Choose(test=Compare(op=op, left=one, right=two), then=then, other=other) if _cancels_between(one, two):
            return choose(compare(op, fn(IN_FLOATS, one, two), _ZERO), then, other)
        case Fn(name=name, args=(one,)) if _is_step(name) and _cancels(one):
            return fn(name, fn(IN_FLOATS, one))
        case _:
            return node


def _cancels_between(one: Expr, two: Expr) -> bool:
    """Whether the same element may cancel in a test of two numbers, of which floats do not have both."""
    if one is two or _is_infinite(one) or _is_infinite(two) or not _is_short(one) or not _is_short(two):
        return False
    shared = bool(_leaves(one) & _leaves(two)) and not (_is_exact(one) and _is_exact(two))
    return shared or _cancels(one) or _cancels(two)


def _is_infinite(of: Expr) -> bool:
    """Whether it is an infinity, which no rounding makes of a number."""
    return isinstance(of, Infinity)


def _is_short(of: Expr) -> bool:
    return len(nodes(of)) <= _MOST


@lru_cache(maxsize=1 << 12)
def _cancels(of: Expr) -> bool:
    """Whether the operands of a sum in a value share an element."""
    match of:
        case Fn(name="add" | "sub", args=(one, two)) if _leaves(one) & _leaves(two):
            return True
        case Fn(args=args):
            return any(map(_cancels, args))
        case Choose(then=then, other=other):
            return _cancels(then) or _cancels(other)
        case _:
            return False


@lru_cache(maxsize=1 << 12)
def _leaves(of: Expr) -> frozenset[Expr]:
    """The elements, and the reductions, that a value is computed of."""
    match of:
        case Element() | Reduce():
            return frozenset((of,))
        case Fn(args=args):
            return _union(map(_leaves, args))
        case Choose(then=then, other=other):
            return _leaves(then) | _leaves(other)
        case Number() | Infinity() | Whole():
            return frozenset()


def _union(found: Iterable[frozenset[Expr]]) -> frozenset[Expr]:
    return frozenset[Expr]().union(*found)


def _is_exact(of: Expr) -> bool:
    """Whether floats have the value, if they have the elements that it is computed of."""
    match of:
        case Fn(name=name, args=args):
            return name in _EXACT and all(map(_is_exact, args))
        case Choose(then=then, other=other):
            return _is_exact(then) and _is_exact(other)
        case Reduce(op=op, body=body):
            return op in ("max", "min") and _is_exact(body)
        case Element() | Number() | Infinity() | Whole():
            return True
