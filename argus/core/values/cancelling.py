"""Tests in which numbers cancel: over the reals x + 1 > x always holds, in floats only where x is small.

Rounding may decide any test of computed numbers, but mostly next to the place where it changes. Where both sides of a
test, or operands in it of which some are rounded, contain the same element, what is left of them over the reals may be
nothing but rounding in floats, as of x * (1 / x) >= 1. And where a number is locally constant, as max(x, 41) is, all
of it may lie next to that place, as in max(x, 41) / 3 * 3 >= 41. Then the test is one of an unknown function of its
sides; so is a test too long to be looked at. Of a test against 0 the sign is enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations
from math import prod

from argus.core.values.common_terms import may_cancel
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
from argus.core.values.numbers import ROUNDED, at_least_zero
from argus.core.values.rewriting import map_parts, nodes
from argus.core.values.same_computation import compares_one_computation

IN_FLOATS = "in floats"
"""The unknown function: the difference of two sides, or a number, as floats have it."""
_EXACT = frozenset(("abs", "ceil", "floor", "max", "min", "neg", "relu", "round", "round_bf16", "sign"))
"""Functions whose results floats have if they have the arguments."""
_STEPS = frozenset(("ceil", "floor", "round", "sign"))
_MOST = 1 << 9
"""The most parts of a side that is looked at: more may cancel."""
_LARGEST = 1 << 24
"""f32 has all integers up to this."""
_ZERO = expr(0)


def with_tests_in_floats(root: Expr, every: bool = False) -> Expr:
    """The expression with tests, and steps to integers, in which numbers cancel as those of an unknown number.

    every: those of all numbers that are rounded, so that it does not matter how a number is written.
    """
    known: dict[Expr, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node not in known:
            known[node] = _in_floats(map_parts(node, visit, lambda index: index, lambda cond: cond), every)
        return known[node]

    return visit(root) if any(map(_decides, nodes(root))) else root


def _decides(node: Expr) -> bool:
    match node:
        case Choose(test=Compare()):
            return True
        case Fn(name=name, args=(_,)):
            return _is_step(name)
        case _:
            return False


def _is_step(name: str) -> bool:
    return name in _STEPS or name.startswith("to ")


def _in_floats(node: Expr, every: bool) -> Expr:
    match node:
        case Choose(test=Compare(op=op, left=one, right=two), then=then, other=other):
            if _is_continuous(one, two, then, other) or not _cancels_between(one, two, every):
                return node
            return choose(compare(op, fn(IN_FLOATS, one, two), _ZERO), then, other)
        case Fn(name=name, args=(one,)) if _is_step(name) and (not _is_exact(one) if every else _cancels(one)):
            return fn(name, fn(IN_FLOATS, one))
        case _:
            return node


def _is_exact_or_integer(of: Expr) -> bool:
    return _is_exact(of) or _is_integer(of)


def _is_continuous(one: Expr, two: Expr, then: Expr, other: Expr) -> bool:
    """Whether both branches of a choice are equal where the sides of its test are, as of a maximum or a leaky relu.

    Rounding changes such a value a little, as it does any other, whichever branch it takes.
    """
    if {then, other} == {one, two}:
        return True
    of = one if two is _ZERO else two
    return _ZERO in (one, two) and _is_multiple(then, of) and _is_multiple(other, of)


def _is_multiple(value: Expr, of: Expr) -> bool:
    match value:
        case Fn(name="neg", args=(one,)):
            return one is of
        case Fn(name="mul", args=(one, two)):
            return (one is of and isinstance(two, Number)) or (two is of and isinstance(one, Number))
        case _:
            return value is of or value is _ZERO


def _cancels_between(one: Expr, two: Expr, every: bool) -> bool:
    """Whether the same element may cancel in a test of two numbers, of which floats do not have both."""
    if one is two or _is_infinite(one) or _is_infinite(two) or all(map(_is_exact_or_integer, (one, two))):
        return False
    if _ZERO in (one, two) and _has_its_sign(one) and _has_its_sign(two):
        return False
    if every or _cancels(one) or _cancels(two):
        return True
    return _share(one, two) and may_cancel(one, two) and not compares_one_computation(one, two)


def _is_infinite(of: Expr) -> bool:
    """Whether it is an infinity, which no rounding makes of a number."""
    return isinstance(of, Infinity)


@lru_cache(maxsize=1 << 12)
def _cancels(of: Expr) -> bool:
    """Whether elements may cancel in a value, or in a part that it is computed of, or it is too long to say."""
    if len(nodes(of)) > _MOST:
        return True
    return any(_rounds_what_is_shared(each) or _rounds_constants(each) for each in _computing(of))


@lru_cache(maxsize=1 << 12)
def _has_its_sign(of: Expr) -> bool:
    """Whether floats have the sign of a value, if nothing underflows.

    Sums of terms that are not negative are 0 only if all terms are, products and quotients have the signs of their
    operands, and exponentials of finite numbers are above 0, however they are rounded.
    """
    match of:
        case Fn(name="exp" | "exp2"):
            return True
        case Fn(name="mul" | "div" | "max" | "min" | "neg" | "abs" | "sqrt", args=args):
            return all(map(_has_its_sign, args))
        case Fn(name="add", args=args) if all(at_least_zero(each) == () for each in args):
            return all(map(_has_its_sign, args))
        case Reduce(op="sum", body=body) if at_least_zero(body) == ():
            return _has_its_sign(body)
        case Choose(then=then, other=other):
            return _has_its_sign(then) and _has_its_sign(other)
        case _:
            return not _cancels(of)


def _rounds_what_is_shared(of: Expr) -> bool:
    """Whether operands share an element, and some are rounded: other than sums of products that have no common term.

    An operation on numbers that floats have is rounded once: the result is as near to the right one as floats can be.
    """
    match of:
        case Fn(name=name, args=args) if name not in _EXACT and not _is_unknown(of) and not all(map(_is_exact, args)):
            if name in ("add", "sub") and not may_cancel(*args):
                return False
            return not _is_monomial(of) and any(_share(one, two) for one, two in combinations(args, 2))
        case _:
            return False


def _rounds_constants(of: Expr) -> bool:
    """Whether an operation rounds the same number, that is no integer, for all values that some elements may have."""
    return not (_keeps(of) or _is_unknown(of) or _is_integer(of)) and _may_be_constant(of)


def _is_unknown(of: Expr) -> bool:
    """Whether it is a function already of which nothing is known, unless it provably rounds nothing."""
    return isinstance(of, Fn) and (of.name == IN_FLOATS or of.name.startswith(ROUNDED))


@lru_cache(maxsize=1 << 12)
def _is_integer(of: Expr) -> bool:
    """Whether a value is an integer that floats have: a small one, a count, or an extremum or a choice of such."""
    match of:
        case Fn(name="neg" | "max" | "min" | "abs", args=args):
            return all(map(_is_integer, args))
        case Choose(then=then, other=other):
            return _is_integer(then) and _is_integer(other)
        case Reduce(op="sum", body=body):
            return _most_of(body) in (0, 1)
        case Reduce(op="max" | "min", body=body):
            return _is_integer(body)
        case Whole():
            return True
        case Fn() | Number() | Reduce() | Element() | Infinity():
            return _most_of(of) is not None


def _most_of(of: Expr) -> int | None:
    """The greatest magnitude that an integer may have, by its constants; None if f32 may not have it."""
    match of:
        case Number(value=value):
            found = abs(int(value)) if value.denominator == 1 else None
        case Fn(name="add" | "sub" | "mul" | "max" | "min" | "neg" | "abs" as name, args=args):
            most = [each for each in map(_most_of, args) if each is not None]
            join = sum if name in ("add", "sub") else prod if name == "mul" else max
            found = join(most) if len(most) == len(args) else None
        case Choose(then=then, other=other):
            one, two = _most_of(then), _most_of(other)
            found = None if one is None or two is None else max(one, two)
        case _:
            found = None
    return found if found is not None and found <= _LARGEST else None


@lru_cache(maxsize=1 << 12)
def _may_be_constant(of: Expr) -> bool:
    """Whether a value may be the same number, whatever elements near by are: as max(x, 1) is where x is below 1."""
    match of:
        case Fn(name=name, args=args):
            decides = name == "relu" or _is_step(name)
            return decides or (any if name in ("max", "min") else all)(map(_may_be_constant, args))
        case Choose(test=test, then=then, other=other):
            either = any if isinstance(test, Compare) else all
            return either(map(_may_be_constant, (then, other)))
        case Reduce(body=body):
            return _may_be_constant(body)
        case Number() | Whole():
            return True
        case Element() | Infinity():
            return False


@lru_cache(maxsize=1 << 12)
def _is_monomial(of: Expr) -> bool:
    """Whether it is a product of numbers, elements and reductions, whose factors nothing divides or adds to."""
    match of:
        case Fn(name=name, args=args):
            return (name == "mul" or name in _EXACT) and all(map(_is_monomial, args))
        case Element() | Reduce() | Number() | Whole():
            return True
        case Choose() | Infinity():
            return False


def _share(one: Expr, two: Expr) -> bool:
    """Whether two values are computed of the same element: in reductions, of the same tensor."""
    mine, other = _leaves(one), _leaves(two)
    return bool(mine & other or _tensors(mine) & _reduced(other) or _reduced(mine) & _tensors(other))


@lru_cache(maxsize=1 << 12)
def _leaves(of: Expr) -> frozenset[Expr]:
    """The elements, the integers that are not constants, and the reductions that a value is computed of."""
    return frozenset(each for each in _computing(of, into=False) if isinstance(each, Element | Reduce | Whole))


def _tensors(leaves: Iterable[Expr]) -> frozenset[str]:
    """The tensors whose elements leaves are, or reduce."""
    return frozenset(each.tensor for of in leaves for each in _computing(of) if isinstance(each, Element))


def _reduced(leaves: Iterable[Expr]) -> frozenset[str]:
    """The tensors whose elements leaves reduce."""
    return _tensors(each for each in leaves if isinstance(each, Reduce))


def _computing(root: Expr, *, into: bool = True) -> Iterable[Expr]:
    """What a value is computed of, itself first: without the sides of tests, and only if asked into reductions."""
    seen: set[Expr] = set()
    stack = [root]
    while stack:
        top = stack.pop()
        if top in seen:
            continue
        seen.add(top)
        yield top
        match top:
            case Fn(args=args):
                stack += args
            case Choose(then=then, other=other):
                stack += (then, other)
            case Reduce(body=body) if into:
                stack.append(body)
            case Reduce() | Element() | Number() | Infinity() | Whole():
                pass


@lru_cache(maxsize=1 << 12)
def _is_exact(of: Expr) -> bool:
    """Whether floats have the value, if they have the elements that it is computed of."""
    return all(map(_keeps, _computing(of)))


def _keeps(of: Expr) -> bool:
    """Whether a step of a computation rounds nothing."""
    match of:
        case Fn(name=name):
            return name in _EXACT
        case Reduce(op=op):
            return op in ("max", "min")
        case Choose() | Element() | Number() | Infinity() | Whole():
            return True
