"""Element operations: one entry each gives the evaluation, the definition in terms of others, and the neutral padding.

An operation without a definition, and without a case in `normal`, is an opaque function: equal to itself for equal
arguments. Values are real numbers here: where an argument has none (NaN), the result has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor

import numpy as np
from attrs import frozen

from argus.core.elementwise import ELEMENT_OPS
from argus.core.rounding import is_between, round_bf16, round_exactly
from argus.core.values import expr as syntax
from argus.core.values.expr import Expr, choose, compare, fn, infinity
from argus.core.wrapping import BITS, is_at_an_end, wrapped, wrapped_exactly

Exact = Callable[..., Fraction]
_FLOAT = np.float64
CLOSE = 1e-9
"""Numbers this close may be equal but for rounding."""


@frozen
class Operation:
    """An operation on numbers.

    number: its value in float64. exact: its value on Fractions, where that is one (it may raise ZeroDivisionError).
    definition: what it is, in terms of others. neutral: the padding that changes nothing where it combines elements.
    jumps: whether the value changes at once at, or close to, this argument, so that rounding may decide it.
    """

    name: str
    arity: int
    number: Callable[..., np.float64]
    exact: Exact | None = None
    definition: Callable[..., Expr] | None = None
    neutral: Expr | None = None
    jumps: Callable[[float], bool] | None = None


def _one(
    name: str,
    number: Callable[[np.float64], np.float64],
    exact: Callable[[Fraction], Fraction] | None = None,
    definition: Callable[[Expr], Expr] | None = None,
    jumps: Callable[[float], bool] | None = None,
) -> Operation:
    return Operation(name, 1, number, exact, definition, None, jumps)


def _two(
    name: str,
    number: Callable[[np.float64, np.float64], np.float64],
    exact: Callable[[Fraction, Fraction], Fraction] | None = None,
    definition: Callable[[Expr, Expr], Expr] | None = None,
    neutral: Expr | None = None,
) -> Operation:
    return Operation(name, 2, number, exact, definition, neutral)


def _log_of_two() -> Expr:
    return fn("log", 2)


def _philox(*args: np.float64) -> np.float64:
    return _FLOAT(ELEMENT_OPS["philox"].meaning(*(np.asarray(each).astype(np.int64) for each in args)))


def _exactly_philox(*args: Fraction) -> Fraction:
    return Fraction(int(ELEMENT_OPS["philox"].meaning(*(np.asarray(int(each)) for each in args))))


def _whole(a: float) -> bool:
    return abs(a - np.rint(a)) < CLOSE


def _between(a: float) -> bool:
    return abs(abs(a - np.floor(a)) - 0.5) < CLOSE


def _sign(a: Expr) -> Expr:
    return choose(compare("<", 0, a), 1, choose(compare("<", a, 0), -1, 0))


def _wrapping(name: str, bits: int) -> Operation:
    return _one(
        name,
        lambda a: wrapped(a, bits),
        lambda a: wrapped_exactly(a, bits),
        None,
        lambda a: is_at_an_end(a, bits),
    )


_ENTRIES = (
    _two("add", lambda a, b: a + b, lambda a, b: a + b, neutral=syntax.expr(0)),
    _two("mul", lambda a, b: a * b, lambda a, b: a * b, neutral=syntax.expr(1)),
    _two("div", lambda a, b: a / b, lambda a, b: a / b),
    _two("pow", lambda a, b: _FLOAT(np.power(a, b))),
    _one("exp", lambda a: _FLOAT(np.exp(a))),
    _one("log", lambda a: _FLOAT(np.log(a))),
    _two("max", lambda a, b: _FLOAT(np.maximum(a, b)), max, neutral=infinity(-1)),
    _one("neg", lambda a: -a, lambda a: -a, lambda a: fn("mul", -1, a)),
    _two("sub", lambda a, b: a - b, lambda a, b: a - b, lambda a, b: fn("add", a, fn("mul", -1, b))),
    _two(
        "min",
        lambda a, b: _FLOAT(np.minimum(a, b)),
        min,
        lambda a, b: fn("neg", fn("max", fn("neg", a), fn("neg", b))),
        infinity(1),
    ),
    _one("abs", lambda a: _FLOAT(np.abs(a)), abs, lambda a: fn("max", a, fn("neg", a))),
    _one("relu", lambda a: _FLOAT(np.maximum(a, 0.0)), lambda a: max(a, Fraction(0)), lambda a: fn("max", a, 0)),
    _one("reciprocal", lambda a: 1 / a, lambda a: 1 / a, lambda a: fn("div", 1, a)),
    _one("sqrt", lambda a: _FLOAT(np.sqrt(a)), None, lambda a: fn("pow", a, Fraction(1, 2))),
    _one("rsqrt", lambda a: 1 / _FLOAT(np.sqrt(a)), None, lambda a: fn("pow", a, Fraction(-1, 2))),
    _one("exp2", lambda a: _FLOAT(np.exp2(a)), None, lambda a: fn("exp", fn("mul", a, _log_of_two()))),
    _one("log2", lambda a: _FLOAT(np.log2(a)), None, lambda a: fn("div", fn("log", a), _log_of_two())),
    _one(
        "sigmoid",
        lambda a: 1 / (1 + _FLOAT(np.exp(-a))),
        None,
        lambda a: fn("div", 1, fn("add", 1, fn("exp", fn("neg", a)))),
    ),
    _one(
        "tanh",
        lambda a: _FLOAT(np.tanh(a)),
        None,
        lambda a: fn("sub", fn("mul", 2, fn("sigmoid", fn("mul", 2, a))), 1),
    ),
    Operation("philox", 6, _philox, _exactly_philox),
    _one("sin", lambda a: _FLOAT(np.sin(a))),
    _one("cos", lambda a: _FLOAT(np.cos(a))),
    _one("erf", lambda a: _FLOAT(ELEMENT_OPS["erf"].meaning(np.asarray(a)))),
    _one("floor", lambda a: _FLOAT(np.floor(a)), lambda a: Fraction(floor(a)), None, _whole),
    _one("ceil", lambda a: _FLOAT(np.ceil(a)), lambda a: Fraction(ceil(a)), None, _whole),
    _one("round", lambda a: _FLOAT(np.rint(a)), lambda a: Fraction(round(a)), None, _between),
    _one(
        "round_bf16",
        lambda a: _FLOAT(round_bf16(np.asarray(a, _FLOAT))),
        round_exactly,
        None,
        lambda a: is_between(a, CLOSE),
    ),
    _one("sign", lambda a: _FLOAT(np.sign(a)), lambda a: Fraction((a > 0) - (a < 0)), _sign, lambda a: abs(a) < CLOSE),
    *(_wrapping(name, bits) for name, bits in BITS.items()),
)

OPERATIONS: Mapping[str, Operation] = {entry.name: entry for entry in _ENTRIES}
