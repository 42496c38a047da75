"""The number that a value is where a condition fails, through operations: neutral in a sum or an extremum, or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isnan, nan

from argus.core.index import Cond
from argus.core.values.expr import Expr, Infinity, Number, ReduceOp

Pads = Mapping[Cond, float]
"""The number of a value where a condition fails; NaN where that is not one known number."""

NEUTRAL: Mapping[ReduceOp, float] = {"sum": 0.0, "product": 1.0, "max": -inf, "min": inf}
_TAKE_0_TO_0 = frozenset(("relu", "abs", "round_bf16", "sqrt", "tanh", "neg"))


def number(of: Expr) -> float | None:
    """The number that an expression is; None for others."""
    match of:
        case Number(value=value):
            return float(value)
        case Infinity(sign=sign):
            return inf * sign
        case _:
            return None


def outside(pads: Pads, test: Cond, other: float) -> Pads:
    """Those of a value that is another number where a test fails."""
    return {**{cond: each if each == other else nan for cond, each in pads.items()}, test: other}


def either(one: Pads, two: Pads) -> Pads:
    """Those of a value that is one of two."""
    return {
        cond: number if one.get(cond, number) == two.get(cond, number) else nan
        for cond, number in {**one, **two}.items()
    }


def positively_scaled(pads: Pads) -> Pads:
    """Those of a value times a number above 0."""
    return {cond: each if each in (0, inf, -inf) else nan for cond, each in pads.items()}


def operated(name: str, args: Sequence[Pads], numbers: Sequence[float | None]) -> Pads:
    """Those of an operation. numbers: of arguments that are numbers; others are any finite number elsewhere."""
    conds = dict.fromkeys(cond for each in args for cond in each)
    pairs = tuple(zip(args, numbers, strict=True))
    return {cond: _operated(name, [each.get(cond, own) for each, own in pairs]) for cond in conds}


def _operated(name: str, args: Sequence[float | None]) -> float:
    match name, args:
        case ("mul", [one, two]) if 0 in (one, two) and not {inf, -inf} & {one, two}:
            return 0.0
        case ("mul", [one, two]) if one is not None and two is not None and inf in (abs(one), abs(two)):
            return one * two
        case ("div", [0.0, two]) if two is None or two != 0:
            return 0.0
        case ("add" | "sub", [0.0, 0.0]):
            return 0.0
        case ("add", [one, two]) if -inf in (one, two) and inf not in (one, two) and not _unknown(one, two):
            return -inf
        case ("sub", [one, two]) if one == -inf and two != -inf and not _unknown(two):
            return -inf
        case ("max" | "min", [one, two]) if one is not None and one == two:
            return one
        case ("exp" | "exp2", [one]) if one == -inf:
            return 0.0
        case (_, [one]) if name.startswith("to ") and one is not None and one.is_integer():
            return one
        case (_, [one]) if name in _TAKE_0_TO_0 and one == 0:
            return 0.0
        case _:
            return nan


def _unknown(*numbers: float | None) -> bool:
    return any(each is not None and isnan(each) for each in numbers)
