"""Integers as numbers of types of floats that have not all of them: their rounding is an unknown function.

What depends on such a number continuously is claimed over the reals, beside the roundings that the claim states. A
test, a floor or a conversion to an integer may come out otherwise for the rounded number: the function stays there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import assert_never

from argus.core import algebra
from argus.core.dtype import DType, bf16, f32
from argus.core.index import Bin, Cond, Const, Index
from argus.core.proof.values.held.terms import chosen, integer
from argus.core.proof.values.held.whole_numbers import whole_numbers
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
    compare,
    fn,
    reduce_,
)
from argus.core.values.limits import clamped
from argus.core.values.numbers import ROUNDED
from argus.core.values.rewriting import map_parts

_CONTINUOUS = frozenset(
    (
        *("abs", "add", "cos", "div", "erf", "exp", "exp2", "log", "log2", "max", "min", "mul", "neg", "pow"),
        *("reciprocal", "relu", "rsqrt", "sigmoid", "sin", "sqrt", "sub", "tanh"),
    )
)
_FINITE = {f"{ROUNDED}{dtype}": whole_numbers((dtype,)) for dtype in (bf16, f32)}
"""Roundings of which no integer of 64 bits is infinite, each with the size up to which its type has all integers."""
Holds = Callable[[Cond], bool]
_EXACT = ("abs", "ceil", "floor", "max", "min", "neg", "round", "sign")
"""Operations on numbers of a type whose result the type has."""


def as_float(of: Expr, dtype: DType, holds: Holds) -> Expr:
    """A value as a number of a type of floats: itself, but rounded if it is of integers that the type may not have."""
    if isinstance(of, Fn) and of.name.startswith(ROUNDED):
        return of if dtype == f32 or of.name == _name(dtype) else fn(_name(dtype), of)
    return of if not _of_integers(of) or _is_exact(of, whole_numbers((dtype,)) - 1, holds) else fn(_name(dtype), of)


def narrowed(of: Expr, dtype: DType) -> Expr:
    """A number that a type of fewer bits than f32 rounds: itself, if it is one that the type has."""
    rounds = dtype.family == "float" and dtype.bits < f32.bits and not isinstance(of, Number)
    return fn(_name(dtype), of) if rounds and not _has(dtype, of) else of


def _has(dtype: DType, of: Expr) -> bool:
    """Whether a value is a number that the type has, as far as its shape tells.

    What bf16 leaves of what it leaves of a number of f32 is one of bf16, as 24 bits are three times 8, unless it
    underflows.
    """
    match of:
        case Number(value=value):
            return value.denominator == 1 and abs(value) < whole_numbers((dtype,))
        case Choose(then=one, other=other):
            return _has(dtype, one) and _has(dtype, other)
        case Fn(name="round_bf16"):
            return dtype == bf16
        case Fn(name="sub", args=(Fn(name="sub"), _)):
            return dtype == bf16 and _leaves(of) and _leaves(of.args[0])
        case _:
            return isinstance(of, Fn) and of.name == _name(dtype)


def _leaves(of: Expr) -> bool:
    """Whether a value is x - round_bf16(x)."""
    match of:
        case Fn(name="sub", args=(x, Fn(name="round_bf16", args=(rounded,)))):
            return x is rounded
        case _:
            return False


def computed(name: str, args: Sequence[Expr], dtype: DType, holds: Holds) -> Expr:
    """What an operation on numbers of a type computes, rounded if the type is narrower than f32.

    A sum of counts is a count, wherever it is rounded.
    """
    if name == "add" and all(map(_is_count, args)):
        return fn(name, *args)
    found = operation(name, [as_float(each, dtype, holds) for each in args], holds)
    if isinstance(found, Fn) and found.name in _EXACT:
        return found
    held = as_float(found, dtype, holds)
    return held if held is not found else narrowed(found, dtype)


def operation(name: str, args: Sequence[Expr], holds: Holds) -> Expr:
    """An operation on numbers, over the reals."""
    return clamped(args[0], args[1], args[2], holds) if name == "clamp" else fn(name, *args)


def _name(dtype: DType) -> str:
    return f"{ROUNDED}{dtype}"


def _of_integers(of: Expr) -> bool:
    """Whether a value is computed of integers alone; a literal is one that its type has."""
    return _kinds(of) == _INTEGERS


_INTEGERS = frozenset(("integer",))


@lru_cache(maxsize=1 << 13)
def _kinds(of: Expr) -> frozenset[str]:
    """Whether a value is computed of integers, sums over ranges included, and of anything else.

    What choices are made by does not count, nor do literals.
    """
    match of:
        case Fn(args=args):
            own: frozenset[str] = frozenset(("other",)) if of.name.startswith("?") else frozenset()
            return own.union(*map(_kinds, args))
        case Choose(then=then, other=other):
            return _kinds(then) | _kinds(other)
        case Reduce(op=op, body=body):
            return _kinds(body) | _INTEGERS if op in ("sum", "product") else _kinds(body)
        case Whole():
            return _INTEGERS
        case Element():
            return frozenset(("other",))
        case Number() | Infinity():
            return frozenset()
        case _:
            assert_never(of)


def _is_exact(of: Expr, most: int, holds: Holds) -> bool:
    """Whether a value is an integer of at most this size, or infinite."""
    size = _size(of)
    return size <= most if size is not None else _is_integer(of) and _is_between(of, most, holds)


def _is_between(of: Expr, most: int, holds: Holds) -> bool:
    return all(_is_within(of, sign, most, holds) for sign in (1, -1))


def _is_integer(of: Expr) -> bool:
    """Whether a value is an integer or infinite, and computed of no rounded number."""
    match of:
        case Number(value=value):
            return value.denominator == 1
        case Whole() | Infinity():
            return True
        case Choose(then=one, other=other) | Fn(name="add" | "sub" | "mul" | "max" | "min", args=(one, other)):
            return _is_integer(one) and _is_integer(other)
        case Fn(name="neg", args=(one,)):
            return _is_integer(one)
        case Reduce(op="max" | "min", body=body):
            return _is_integer(body)
        case _:
            return False


def _is_within(of: Expr, sign: int, most: int, holds: Holds) -> bool:
    """Whether an integer times a sign is at most a number: an extremum by its operands."""
    index = _index(of)
    if index is not None:
        return _is_index_within(index, sign, most, holds)
    match of:
        case Infinity():
            return True
        case Choose(test=test, then=then, other=other) if not isinstance(test, Compare):
            return _is_within(then, sign, most, lambda cond: holds(_or(algebra.negate(test), cond))) and _is_within(
                other, sign, most, lambda cond: holds(_or(test, cond))
            )
        case Choose(then=one, other=other):
            return all(_is_within(each, sign, most, holds) for each in (one, other))
        case Fn(name="max" | "min" as name, args=args):
            ways = (_is_within(each, sign, most, holds) for each in args)
            return any(ways) if (name == "min") == (sign > 0) else all(ways)
        case Fn(name="neg", args=(one,)):
            return _is_within(one, -sign, most, holds)
        case Reduce(op="max" | "min", variable=variable, low=low, high=high, body=body):
            at = algebra.sym(variable)
            outside = _or(algebra.lt(at, low), algebra.le(high, at))
            return _is_within(body, sign, most, lambda cond: holds(_or(outside, cond)))
        case _:
            return False


def _or(one: Cond, other: Cond) -> Cond:
    return algebra.any_of((one, other))


def _is_index_within(index: Index, sign: int, most: int, holds: Holds) -> bool:
    match index:
        case Bin(op="min" | "max" as name, left=one, right=other):
            ways = (_is_index_within(each, sign, most, holds) for each in (one, other))
            return any(ways) if (name == "min") == (sign > 0) else all(ways)
        case _:
            return holds(algebra.le(algebra.mul(index, sign), most))


def _size(of: Expr) -> int | None:
    """A bound of a value's size, if it is an integer that is computed of literal numbers: of few truth values."""
    match of:
        case Number(value=value):
            return abs(int(value)) if value.denominator == 1 else None
        case Choose(then=one, other=other):
            sizes = _size(one), _size(other)
            return None if sizes[0] is None or sizes[1] is None else max(sizes[0], sizes[1])
        case Fn(name="add" | "sub", args=(one, other)):
            sizes = _size(one), _size(other)
            return None if sizes[0] is None or sizes[1] is None else sizes[0] + sizes[1]
        case Reduce(op="sum", low=Const(value=low), high=Const(value=high), body=body):
            size = _size(body)
            return None if size is None else size * max(high - low, 0)
        case _:
            return None


def _index(of: Expr) -> Index | None:
    """The integer expression that a value is."""
    match of:
        case Fn(name="add" | "sub" | "mul" as name, args=(one, other)):
            left, right = _index(one), _index(other)
            operation = {"add": algebra.add, "sub": algebra.sub, "mul": algebra.mul}[name]
            return None if left is None or right is None else operation(left, right)
        case _:
            return integer(of)


def unrounded(root: Expr, most: int, *, decided: bool = False) -> Expr:
    """The value without roundings of integers, where it depends on them continuously.

    most: the size up to which the kernel's types have all integers. decided: whether a choice is made by the value.
    Integers that are not rounded are at least such as f32 has.
    """
    done: dict[tuple[Expr, bool], Expr] = {}

    def visit(node: Expr, decided: bool) -> Expr:
        key = node, decided
        if key not in done:
            done[key] = _visited(node, decided)
        return done[key]

    def _visited(node: Expr, decided: bool) -> Expr:
        match node:
            case Fn(name=name, args=(one,)) if name.startswith(ROUNDED):
                inner = visit(one, decided)
                return fn(name, inner) if decided else inner
            case Fn(name=name, args=args):
                stays = decided or name not in _CONTINUOUS
                return fn(name, *(visit(each, stays) for each in args))
            case Choose(test=Compare(op=op, left=left, right=right), then=then, other=other):
                sides = beside_integers(visit(left, True), visit(right, True), most, whole_numbers(()))
                return chosen(compare(op, *sides), visit(then, decided), visit(other, decided))
            case Reduce(op=op, variable=variable, low=low, high=high, where=where, body=body):
                return reduce_(op, variable, low, high, visit(body, decided), where)
            case _:
                return map_parts(node, lambda each: visit(each, decided), lambda at: at, lambda cond: cond)

    return visit(root, decided)


def beside_integers(left: Expr, right: Expr, most: int, shown: int) -> tuple[Expr, Expr]:
    """Both sides of a comparison: rounding keeps on which side of a smaller number, which its type has, one lies.

    most: the size of such numbers. shown: that of integers that are not rounded, shown where they became floats.
    """
    return _bare(left, right, most, shown), _bare(right, left, most, shown)


def _bare(of: Expr, beside: Expr, most: int, shown: int) -> Expr:
    """The integer that a number is rounded from: one that is rounded once, or a count, which sums up without signs."""
    if not isinstance(of, Fn) or of.name not in _FINITE:
        return of
    (inner,), own = of.args, _FINITE[of.name]
    small = _is_small(beside, min(most, own), integers=shown <= own)
    return inner if small and (_is_integer(inner) or _is_count(inner)) else of


def _is_small(of: Expr, most: int, *, integers: bool) -> bool:
    """Whether a value is a number below `most`. integers: whether those of the program are."""
    match of:
        case Number(value=value):
            return abs(value) < most
        case Infinity():
            return True
        case Whole():
            return integers
        case Choose(then=one, other=other) | Fn(name="max" | "min", args=(one, other)):
            return all(_is_small(each, most, integers=integers) for each in (one, other))
        case Reduce(op="max" | "min", body=body):
            return _is_small(body, most, integers=integers)
        case _:
            return False


def _is_count(of: Expr) -> bool:
    """Whether a value is an integer of at least 0: a number, a choice of such, or a sum of such.

    Wherever such a sum is rounded, it is as large as the integers that the type has without a gap, and remains so.
    """
    match of:
        case Number(value=value):
            return value.denominator == 1 and value >= 0
        case Choose(then=then, other=other):
            return _is_count(then) and _is_count(other)
        case Fn(name="add", args=args):
            return all(map(_is_count, args))
        case Reduce(op="sum", body=body):
            return _is_count(body)
        case _:
            return False
