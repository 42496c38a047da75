"""Pointwise operations of aten: an element of the result is computed from the elements at its coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, pi, sqrt
from typing import cast

from argus.nests.integers import TYPES as INTEGERS
from argus.nests.integers import in_type
from argus.nests.nest import Apply, CompareOp, Constant, Convert, Expr, Read, Select, Test
from argus.nests.simplify import (
    ONE,
    ZERO,
    apply,
    as_test,
    both,
    compare,
    either,
    negated,
    select,
    truth,
)
from argus.torch.tables.table import Context, NotCovered, constant, lowers
from argus.torch.values import Value, broadcast

Function = Callable[[Expr], Expr] | Callable[[Expr, Expr], Expr] | Callable[[Expr, Expr, Expr], Expr]
FLOATS = ("f32", "bf16", "f16")


def pointwise(cx: Context, function: Function, *operands: object) -> Value:
    """The function of the operands' elements, broadcast to the shape of the result, in the type of the result."""
    values = [cx.value(each) for each in operands]
    rank = len(cx.shape)
    elements = [broadcast(value, rank) for value in values]
    made = cast(Callable[..., Expr], function)
    return Value(cx.shape, cx.dtype, lambda index: in_type(cx.dtype, made(*(each(index) for each in elements))))


def _entry(names: str, function: Function, count: int) -> None:
    """Register operations whose first operands are the function's; they have no others that matter."""

    def entry(cx: Context, *args: object, **_: object) -> Value:
        return pointwise(cx, function, *args[:count])

    lowers(*names.split())(entry)


def _c(value: float) -> Expr:
    return constant(value)


def _op(op: str) -> Callable[..., Expr]:
    def applied(*args: Expr) -> Expr:
        return apply(op, *args)

    return applied


def sigmoid(x: Expr) -> Expr:
    return apply("div", ONE, apply("add", ONE, apply("exp", apply("neg", x))))


def _where_positive(x: Expr, then: Expr, other: Expr) -> Expr:
    return select(compare("<", ZERO, x), then, other)


def _sign(x: Expr) -> Expr:
    return select(compare("<", ZERO, x), ONE, select(compare("<", x, ZERO), _c(-1), ZERO))


_WHOLE = 1 << 24
"""f32, in which templates compute, has all integers up to here."""


def _may_round(x: Expr) -> bool:
    """Whether f32 may round a value: it is chosen among integers in memory, or a number that is too large."""
    match x:
        case Read(dtype=dtype):
            return dtype in INTEGERS
        case Constant(value=value):
            return _WHOLE < abs(value) < inf
        case Select(then=then, other=other):
            return _may_round(then) or _may_round(other)
        case Apply(op="max" | "min" | "neg" | "abs", args=args):
            return any(map(_may_round, args))
        case Convert(dtype=dtype, arg=arg):
            return dtype in INTEGERS or _may_round(arg)
        case _:
            return False


def _compared(op: CompareOp, x: Expr, y: Expr) -> Test:
    """A comparison as numbers of f32, of which rounding keeps the order if it changes one side alone."""
    if _may_round(x) and _may_round(y):
        raise NotCovered("a comparison of integers that f32 may round to equal numbers")
    return compare(op, x, y)


def _of_numbers(op: str, x: Expr, y: Expr) -> Expr:
    """An extremum which is the other operand where one is NaN."""
    return select(_is_nan(x), y, select(_is_nan(y), x, apply(op, x, y)))


def _is_nan(x: Expr) -> Test:
    return negated(compare("==", x, x))


_ARITHMETIC: dict[str, Function] = {
    "mul": _op("mul"),
    "maximum": _op("max"),
    "minimum": _op("min"),
    "fmax": lambda x, y: _of_numbers("max", x, y),
    "fmin": lambda x, y: _of_numbers("min", x, y),
    "logical_and bitwise_and": lambda x, y: truth(both(as_test(x), as_test(y))),
    "logical_or bitwise_or": lambda x, y: truth(either(as_test(x), as_test(y))),
}
for _names, _function in _ARITHMETIC.items():
    _entry(_names, _function, 2)

_COMPARISONS: Mapping[str, tuple[CompareOp, bool, bool]] = {
    "lt": ("<", False, False),
    "le": ("<=", False, False),
    "gt": ("<", True, False),
    "ge": ("<=", True, False),
    "eq": ("==", False, False),
    "ne": ("==", False, True),
}
"""The operation, whether its sides are exchanged, and whether it is negated."""


@lowers(*_COMPARISONS)
def _compare(cx: Context, x: object, y: object) -> Value:
    op, exchanged, negates = _COMPARISONS[cx.name]
    whole = {cx.value(each).dtype for each in (x, y)} <= {*INTEGERS, "bool"}

    def compared(a: Expr, b: Expr) -> Expr:
        sides = (b, a) if exchanged else (a, b)
        test = compare(op, *sides) if whole else _compared(op, *sides)
        return truth(negated(test) if negates else test)

    return pointwise(cx, compared, x, y)


_FUNCTIONS: dict[str, Function] = {
    "neg": _op("neg"),
    "abs": _op("abs"),
    "exp": _op("exp"),
    "exp2": _op("exp2"),
    "log": _op("log"),
    "log2": _op("log2"),
    "sqrt": _op("sqrt"),
    "rsqrt": _op("rsqrt"),
    "tanh": _op("tanh"),
    "erf": _op("erf"),
    "sin": _op("sin"),
    "cos": _op("cos"),
    "expm1": _op("expm1"),
    "log1p": _op("log1p"),
    "floor": _op("floor"),
    "ceil": _op("ceil"),
    "round": _op("round"),
    "reciprocal": lambda x: apply("div", ONE, x),
    "square": lambda x: apply("mul", x, x),
    "sign": _sign,
    "relu": lambda x: apply("max", x, ZERO),
    "sigmoid": sigmoid,
    "silu": lambda x: apply("mul", x, sigmoid(x)),
    "hardsigmoid": lambda x: apply("div", _clamped(apply("add", x, _c(3)), 0, 6), _c(6)),
    "hardswish": lambda x: apply("mul", x, apply("div", _clamped(apply("add", x, _c(3)), 0, 6), _c(6))),
    "mish": lambda x: apply("mul", x, apply("tanh", softplus(x))),
    "log_sigmoid": lambda x: apply("neg", softplus(apply("neg", x))),
    "logical_not bitwise_not": lambda x: truth(negated(as_test(x))),
    "isnan": lambda x: truth(_is_nan(x)),
    "clone alias detach contiguous lift_fresh lift_fresh_copy positive": lambda x: x,
}
for _names, _function in _FUNCTIONS.items():
    _entry(_names, _function, 1)


def _clamped(x: Expr, low: float | None, high: float | None) -> Expr:
    found = x if low is None or low == -inf else apply("max", x, _c(low))
    return found if high is None or high == inf else apply("min", found, _c(high))


def softplus(x: Expr, beta: float = 1.0, threshold: float = 20.0) -> Expr:
    """log(1 + exp(beta x)) / beta; x where beta x is above the threshold, beyond which both agree in f32."""
    scaled = apply("mul", x, _c(beta))
    small = apply("div", apply("log1p", apply("exp", scaled)), _c(beta))
    return select(compare("<", _c(threshold), scaled), x, small)


@lowers("softplus")
def _softplus(cx: Context, x: object, beta: float = 1.0, threshold: float = 20.0) -> Value:
    return pointwise(cx, lambda v: softplus(v, beta, threshold), x)


@lowers("add", "sub", "rsub")
def _add(cx: Context, x: object, y: object, alpha: float = 1) -> Value:
    name = cx.name
    if name == "rsub":
        x, y = y, x
    op = "add" if name == "add" else "sub"
    return pointwise(cx, lambda a, b: apply(op, a, apply("mul", b, _c(alpha))), x, y)


@lowers("div", "true_divide")
def _div(cx: Context, x: object, y: object, rounding_mode: str | None = None) -> Value:
    if rounding_mode is not None:  # a quotient that f32 rounds up to an integer has another floor
        raise NotCovered(f"division rounded by {rounding_mode!r} of {cx.dtype}")
    return pointwise(cx, lambda a, b: apply("div", a, b), x, y)


@lowers("pow")
def _pow(cx: Context, x: object, y: object) -> Value:
    if not isinstance(y, int | float):
        raise NotCovered("a power with an exponent for each element")

    def power(base: Expr) -> Expr:
        if y == 2:
            return apply("mul", base, base)
        if y == 0.5:
            return apply("sqrt", base)
        return apply("pow", base, _c(y))

    return pointwise(cx, power, x)


@lowers("clamp", "clip", "hardtanh", "clamp_min", "clamp_max", "relu6")
def _clamp(cx: Context, x: object, low: object = None, high: object = None) -> Value:
    if cx.name == "clamp_max":
        low, high = None, low
    if cx.name == "relu6":
        low, high = 0, 6
    if cx.name == "hardtanh":
        low, high = (-1 if low is None else low), (1 if high is None else high)
    operands, ends = [x], [None if each is None else each for each in (low, high)]
    operands += [each for each in ends if each is not None]

    def clamp(value: Expr, *bounds: Expr) -> Expr:
        given = list(bounds)
        if low is not None:
            value = apply("max", value, given.pop(0))
        return apply("min", value, given.pop(0)) if high is not None else value

    return pointwise(cx, clamp, *operands)


@lowers("leaky_relu")
def _leaky_relu(cx: Context, x: object, slope: float = 0.01) -> Value:
    return pointwise(cx, lambda v: _where_positive(v, v, apply("mul", v, _c(slope))), x)


@lowers("elu")
def _elu(cx: Context, x: object, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    def elu(v: Expr) -> Expr:
        below = apply("mul", apply("expm1", apply("mul", v, _c(input_scale))), _c(alpha * scale))
        return _where_positive(v, apply("mul", v, _c(scale)), below)

    return pointwise(cx, elu, x)


@lowers("gelu")
def _gelu(cx: Context, x: object, approximate: str = "none") -> Value:
    def exact(v: Expr) -> Expr:
        return apply("mul", apply("mul", v, _c(0.5)), apply("add", ONE, apply("erf", apply("mul", v, _c(sqrt(0.5))))))

    def by_tanh(v: Expr) -> Expr:
        cube = apply("mul", apply("mul", v, v), v)
        inner = apply("mul", _c(sqrt(2 / pi)), apply("add", v, apply("mul", _c(0.044715), cube)))
        return apply("mul", apply("mul", v, _c(0.5)), apply("add", ONE, apply("tanh", inner)))

    return pointwise(cx, exact if approximate == "none" else by_tanh, x)


@lowers("threshold")
def _threshold(cx: Context, x: object, threshold: float, value: float) -> Value:
    return pointwise(cx, lambda v: select(compare("<=", v, _c(threshold)), _c(value), v), x)


@lowers("where")
def _where(cx: Context, cond: object, x: object, y: object) -> Value:
    return pointwise(cx, lambda c, a, b: select(as_test(c), a, b), cond, x, y)


@lowers("masked_fill")
def _masked_fill(cx: Context, x: object, mask: object, value: object) -> Value:
    return pointwise(cx, lambda a, c, v: select(as_test(c), v, a), x, mask, value)


@lowers("addcmul", "addcdiv")
def _addcmul(cx: Context, x: object, y: object, z: object, value: float = 1) -> Value:
    op = "mul" if cx.name == "addcmul" else "div"
    return pointwise(cx, lambda a, b, c: apply("add", a, apply("mul", _c(value), apply(op, b, c))), x, y, z)


@lowers("lerp")
def _lerp(cx: Context, x: object, y: object, weight: object) -> Value:
    return pointwise(cx, lambda a, b, w: apply("add", a, apply("mul", w, apply("sub", b, a))), x, y, weight)


@lowers("_to_copy", "to", "convert_element_type")
def _to_copy(cx: Context, x: object, *_: object, **__: object) -> Value:
    value = cx.value(x)
    if value.dtype in FLOATS and cx.dtype not in FLOATS and cx.dtype != "bool":
        raise NotCovered(f"{value.dtype} converted to {cx.dtype}")
    if cx.dtype == "bool":
        return pointwise(cx, lambda v: truth(as_test(v)), x)
    if value.dtype in FLOATS and value.dtype != cx.dtype:
        return pointwise(cx, lambda v: Convert(cx.dtype, v), x)
    return Value(value.shape, cx.dtype, lambda index: in_type(cx.dtype, value.at(index)))
