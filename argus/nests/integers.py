"""Arithmetic on integers in nests: where it may leave its type, and wraps around there."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite

from argus.core.dtype import i32, i64
from argus.core.elementwise import WIDE_OPS
from argus.nests.nest import Apply, Constant, Convert, Coordinate, Expr, Read, Select

TYPES = {"i32": i32, "i64": i64}
"""The types of integers that wrap around, by name."""
ARITHMETIC = frozenset(WIDE_OPS)
"""The operations that all of them have."""
_COORDINATES = 1 << 53
"""Integers of coordinates and sizes are smaller."""
Interval = tuple[float, float]
"""The least and the greatest number that a value may be. Integers here are exact, however large they are."""
_ANY: Interval = (-inf, inf)


def in_type(dtype: str, value: Expr) -> Expr:
    """The value in a type of elements: converted to it, if it is one of integers that may not have the value."""
    if dtype not in TYPES:
        return value
    low, high = _interval(value, {})
    own = TYPES[dtype].integers
    fits = own.start <= low and high < own.stop and not _is_computed(value)
    return value if fits else Convert(dtype, value)


def _is_computed(of: Expr) -> bool:
    """Whether it is what arithmetic makes of integers in memory, which kernels do in their types."""
    match of:
        case Apply(args=args):
            return any(map(_is_of_memory, args))
        case Select(then=then, other=other):
            return _is_computed(then) or _is_computed(other)
        case _:
            return False


def _is_of_memory(of: Expr) -> bool:
    match of:
        case Read(dtype=dtype) | Convert(dtype=dtype):
            return dtype in TYPES
        case Apply(args=args):
            return any(map(_is_of_memory, args))
        case Select(then=then, other=other):
            return _is_of_memory(then) or _is_of_memory(other)
        case _:
            return False


def _interval(of: Expr, known: dict[int, Interval]) -> Interval:
    if id(of) not in known:
        known[id(of)] = _made(of, known)
    return known[id(of)]


def _made(of: Expr, known: dict[int, Interval]) -> Interval:
    match of:
        case Constant(value=value):
            return (int(value), int(value)) if isfinite(value) else _ANY
        case Read(dtype=dtype, outside=outside):
            beyond = 0 if outside is None else outside
            low, high = _of_type(dtype)
            return min(low, beyond), max(high, beyond)
        case Coordinate():
            return -_COORDINATES, _COORDINATES
        case Convert(dtype=dtype, arg=arg):
            low, high = _interval(arg, known)
            least, most = _of_type(dtype)
            return (low, high) if least <= low and high <= most else (least, most)
        case Select(then=then, other=other):
            a, b = _interval(then, known), _interval(other, known)
            return min(a[0], b[0]), max(a[1], b[1])
        case Apply(op=op, args=args):
            return _applied(op, [_interval(each, known) for each in args])
        case _:
            return _ANY


def _applied(op: str, args: list[Interval]) -> Interval:
    match op, args:
        case "add", [(a, b), (c, d)]:
            return a + c, b + d
        case "sub", [(a, b), (c, d)]:
            return a - d, b - c
        case "neg", [(a, b)]:
            return -b, -a
        case "mul", [(a, b), (c, d)] if isfinite(a) and isfinite(b) and isfinite(c) and isfinite(d):
            corners = [a * c, a * d, b * c, b * d]
            return min(corners), max(corners)
        case "max", [(a, b), (c, d)]:
            return max(a, c), max(b, d)
        case "min", [(a, b), (c, d)]:
            return min(a, c), min(b, d)
        case _:
            return _ANY


_BOOL: Interval = (0, 1)
_INTERVALS: Mapping[str, Interval] = {
    "bool": _BOOL,
    **{name: (each.integers.start, each.integers.stop - 1) for name, each in TYPES.items()},
}


def _of_type(dtype: str) -> Interval:
    return _INTERVALS.get(dtype, _ANY)
