"""Element-wise operations: a closed table of name, arity, NumPy semantics and spelling per target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.philox import philox
from argus.core.rounding import round_bf16

FloatArray = npt.NDArray[Any]


@frozen
class ElementOp:
    """One operation on elements of one type. `max` and `min` return the other operand for NaN, as the hardware does.

    meaning: its semantics, on NumPy arrays of the operands' dtype. tags: "combine" requires tagged operands to agree
    on every shared name and yields the union; sets of contributions survive "linear" operations only.
    spelling: per target, a format string over positional operands. linear: it may scale a sum of products.
    real: the operation on real numbers that it computes, where that has another name. relative: the largest relative
    error of its result, where that is more than a few roundings. integers: it is defined on integers of 32 bits alone.
    """

    name: str
    arity: int
    meaning: Callable[..., FloatArray]
    spelling: Mapping[str, str]
    tags: Literal["combine"] = "combine"
    linear: bool = False
    real: str = ""
    relative: float = 0.0
    integers: bool = False


def _both(text: str) -> dict[str, str]:
    return {"gfx942": text, "sm_90a": text}


def _rsqrt(x: FloatArray) -> FloatArray:
    """One over the root, rounded once: elements of 16 bits are computed in single precision, as by the GPU."""
    wide = x.astype(np.float32) if x.dtype.itemsize < np.dtype(np.float32).itemsize else x
    return np.reciprocal(np.sqrt(wide)).astype(x.dtype)


def _fma(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """a * b + c in single precision, rounded once: the product is exact in double, the sum is rounded to odd."""
    product, other = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + other
    rest = total - product
    error = (product - (total - rest)) + (other - rest)
    even = (total.view(np.int64) & 1) == 0
    with np.errstate(invalid="ignore"):
        moved = np.nextafter(total, np.copysign(np.inf, error))
    odd = np.where(np.isfinite(error) & (error != 0) & even, moved, total)
    return odd.astype(np.float32).astype(np.result_type(a, b, c))


def _clamp(x: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The least of `high` and the greatest of x and `low`; NaN where x is."""
    return np.where(x < low, np.fmin(low, high), np.where(x > high, high, x))


def _erf(x: FloatArray) -> FloatArray:
    """The error function, computed in double precision and rounded once."""
    found = [erf(each) for each in x.astype(np.float64).reshape(-1).tolist()]
    return np.array(found, np.float64).reshape(x.shape).astype(x.dtype)


def _sign(x: FloatArray) -> FloatArray:
    """1, 0 or -1; 0 of NaN, as torch."""
    return ((x > 0).astype(np.float64) - (x < 0).astype(np.float64)).astype(x.dtype)


_ENTRIES = (
    ElementOp("neg", 1, np.negative, _both("-({0})"), linear=True),
    ElementOp("add", 2, np.add, _both("({0} + {1})")),
    ElementOp("sub", 2, np.subtract, _both("({0} - {1})")),
    ElementOp("mul", 2, np.multiply, _both("({0} * {1})"), linear=True),
    ElementOp("div", 2, np.divide, _both("({0} / {1})"), linear=True),
    ElementOp("fma", 3, _fma, {"gfx942": "__builtin_fmaf({0}, {1}, {2})", "sm_90a": "__fmaf_rn({0}, {1}, {2})"}),
    ElementOp("max", 2, np.fmax, {"gfx942": "__builtin_fmaxf({0}, {1})", "sm_90a": "fmaxf({0}, {1})"}),
    ElementOp("min", 2, np.fmin, {"gfx942": "__builtin_fminf({0}, {1})", "sm_90a": "fminf({0}, {1})"}),
    ElementOp(
        "clamp",
        3,
        _clamp,
        {
            "gfx942": "({0} < {1} ? __builtin_fminf({1}, {2}) : {0} > {2} ? {2} : {0})",
            "sm_90a": "({0} < {1} ? fminf({1}, {2}) : {0} > {2} ? {2} : {0})",
        },
    ),
    ElementOp("max_nan", 2, np.maximum, _both("max_nan({0}, {1})"), real="max"),
    ElementOp("min_nan", 2, np.minimum, _both("min_nan({0}, {1})"), real="min"),
    ElementOp("abs", 1, np.abs, {"gfx942": "__builtin_fabsf({0})", "sm_90a": "fabsf({0})"}),
    ElementOp("exp", 1, np.exp, {"gfx942": "__builtin_elementwise_exp({0})", "sm_90a": "expf({0})"}),
    ElementOp("log", 1, np.log, {"gfx942": "__builtin_elementwise_log({0})", "sm_90a": "logf({0})"}),
    ElementOp("log2", 1, np.log2, {"gfx942": "__builtin_elementwise_log2({0})", "sm_90a": "log2f({0})"}),
    ElementOp("sqrt", 1, np.sqrt, {"gfx942": "__builtin_elementwise_sqrt({0})", "sm_90a": "sqrtf({0})"}),
    ElementOp(
        "rsqrt", 1, _rsqrt, {"gfx942": "(1.0f / __builtin_elementwise_sqrt({0}))", "sm_90a": "(1.0f / sqrtf({0}))"}
    ),
    ElementOp("exp2", 1, np.exp2, {"gfx942": "__builtin_amdgcn_exp2f({0})", "sm_90a": "exp2_near({0})"}),
    ElementOp(
        "tanh",
        1,
        np.tanh,
        {
            "gfx942": "(1.0f - 2.0f * __builtin_amdgcn_rcpf(__builtin_elementwise_exp(2.0f * {0}) + 1.0f))",
            "sm_90a": "tanh_near({0})",
        },
        relative=2.0**-10,
    ),
    ElementOp("tanh_accurate", 1, np.tanh, {"gfx942": "tanh_of({0})", "sm_90a": "tanhf({0})"}, real="tanh"),
    ElementOp("erf", 1, _erf, {"gfx942": "erf_of({0})", "sm_90a": "erff({0})"}),
    ElementOp("expm1", 1, np.expm1, {"gfx942": "expm1_of({0})", "sm_90a": "expm1f({0})"}),
    ElementOp("log1p", 1, np.log1p, {"gfx942": "log1p_of({0})", "sm_90a": "log1pf({0})"}),
    ElementOp("pow", 2, np.power, {"gfx942": "pow_of({0}, {1})", "sm_90a": "powf({0}, {1})"}),
    ElementOp("sin", 1, np.sin, {"gfx942": "sin_of({0})", "sm_90a": "sinf({0})"}),
    ElementOp("cos", 1, np.cos, {"gfx942": "cos_of({0})", "sm_90a": "cosf({0})"}),
    ElementOp("floor", 1, np.floor, {"gfx942": "__builtin_elementwise_floor({0})", "sm_90a": "floorf({0})"}),
    ElementOp("ceil", 1, np.ceil, {"gfx942": "__builtin_elementwise_ceil({0})", "sm_90a": "ceilf({0})"}),
    ElementOp("round", 1, np.rint, {"gfx942": "__builtin_elementwise_roundeven({0})", "sm_90a": "rintf({0})"}),
    ElementOp("philox", 6, philox, {}, integers=True),
    ElementOp("sign", 1, _sign, _both("sign_of({0})")),
    ElementOp("round_bf16", 1, round_bf16, _both("(f32)(bf16)({0})")),
    ElementOp("reciprocal", 1, np.reciprocal, {"gfx942": "__builtin_amdgcn_rcpf({0})", "sm_90a": "reciprocal({0})"}),
)

ELEMENT_OPS: Mapping[str, ElementOp] = {entry.name: entry for entry in _ENTRIES}

INTEGER_OPS: Mapping[str, str] = {
    "neg": "(i32)(0u - (unsigned){0})",
    "add": "(i32)((unsigned){0} + (unsigned){1})",
    "sub": "(i32)((unsigned){0} - (unsigned){1})",
    "mul": "(i32)((unsigned){0} * (unsigned){1})",
    "max": "max({0}, {1})",
    "min": "min({0}, {1})",
    "max_nan": "max({0}, {1})",
    "min_nan": "min({0}, {1})",
    "philox": "philox({0}, {1}, {2}, {3}, {4}, {5})",
    "abs": "({0} < 0 ? (i32)(0u - (unsigned){0}) : {0})",
}
"""The operations on integers, and their C text on both targets, in 32 bits. All but `philox` wrap around."""
WIDE_OPS: Mapping[str, str] = {
    "neg": "(long long)(0ull - (unsigned long long){0})",
    "add": "(long long)((unsigned long long){0} + (unsigned long long){1})",
    "sub": "(long long)((unsigned long long){0} - (unsigned long long){1})",
    "mul": "(long long)((unsigned long long){0} * (unsigned long long){1})",
}
"""Those on integers of 64 bits, which wrap around as well, and their C text."""


REAL_NAMES: Mapping[str, str] = {entry.name: entry.real for entry in _ENTRIES if entry.real}
"""The operation on real numbers that an operation computes, of those that have another name."""


def evaluate_op(name: str, *numbers: float) -> float:
    """The value of an operation on numbers, NaN where it is undefined (infinity minus infinity)."""
    with np.errstate(all="ignore"):
        return float(ELEMENT_OPS[name].meaning(*map(np.float64, numbers)))
