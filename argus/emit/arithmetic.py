"""C text of one element-wise operation: conversions of its operands, and the rounding of its result."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from argus.core.dtype import DType, e4m3, e4m3fnuz, e5m2fnuz, f32, i32, i64
from argus.core.elementwise import ELEMENT_OPS, INTEGER_OPS, WIDE_OPS
from argus.core.span import Span
from argus.emit.faults import not_built
from argus.emit.scope import c_type

_EIGHT = (e4m3, e4m3fnuz)
"""The types that `argus.emit.fp8` converts f32 to."""
_ONLY_MULTIPLIED = (e4m3fnuz, e5m2fnuz)
Typed = tuple[str, DType | None]
"""C text and the type in which it is computed; None for a number, which takes the type of the other operand."""


def operation(name: str, args: Sequence[Typed], dtype: DType, target: str, span: Span) -> Typed:
    """An operation of the table of element-wise operations on operands of type `dtype`, computed in f32 and rounded to
    that type, as NumPy does for narrower floats. target: the machine whose spelling is used. Raises ArgusError (E501)
    if it has none.
    """
    if dtype.family == "int":
        own = i64 if dtype == i64 else i32
        spelled = (WIDE_OPS if dtype == i64 else INTEGER_OPS).get(name)
        if spelled is None or (dtype != i32 and ELEMENT_OPS[name].integers):
            raise not_built(f"`{name}` of {dtype}", span)
        return converted((spelled.format(*(converted(arg, dtype) for arg in args)), own), dtype), dtype
    if name not in ELEMENT_OPS or target not in ELEMENT_OPS[name].spelling:
        raise not_built(f"the element-wise operation `{name}` of {dtype}", span)
    text = ELEMENT_OPS[name].spelling[target].format(*map(widened, args))
    return converted((text, f32), dtype), dtype


def widened(typed: Typed) -> str:
    """C text of the value, a narrower float converted to f32."""
    text, dtype = typed
    if dtype in _ONLY_MULTIPLIED:
        raise not_built(f"arithmetic on {dtype}, a type of matrix products alone")
    if dtype == e4m3:
        return f"of_e4m3({text})"
    return f"({c_type(f32)}){text}" if dtype is not None and dtype.bits < f32.bits else text


def converted(typed: Typed, dtype: DType) -> str:
    """C text of the value converted to a type, rounded to the nearest."""
    text, own = typed
    if own == dtype:
        return text
    if dtype == e5m2fnuz:
        raise not_built(f"a conversion to {dtype}")
    if own in _ONLY_MULTIPLIED:
        raise not_built(f"a conversion of {own}, a type of matrix products alone")
    text = widened(typed) if own == e4m3 else text
    return f"to_{dtype}({text})" if dtype in _EIGHT else f"({c_type(dtype)}){text}"


def number_as(typed: Typed, dtype: DType) -> Typed:
    """A number as an operand among elements of type `dtype`: rounded to that type, and an f32 among floats."""
    text, own = typed
    if own is not None:
        return typed
    if dtype.family == "int":
        return converted(typed, dtype), dtype
    return widened((converted((f"({c_type(f32)}){text}", f32), dtype), dtype)), f32


def compared(left: Typed, op: str, right: Typed, dtype: DType) -> str:
    """C text of a comparison of elements of type `dtype`."""
    if dtype.family == "int":
        return f"({converted(left, dtype)} {op} {converted(right, dtype)})"
    return f"({widened(left)} {op} {widened(right)})"


def literal(value: float, dtype: DType) -> Typed:
    """A number rounded to a type: C text of an f32, or of an integer. Raises ArgusError (E501) for no integer."""
    if dtype.family == "int":
        if not math.isfinite(value):
            raise not_built(f"the integer {value:g}")
        return (f"{int(value)}" if value >= 0 else f"({int(value)})"), dtype
    with np.errstate(over="ignore"):
        return _single(float(np.asarray(value).astype(dtype.numpy))), f32


def _single(value: float) -> str:
    """C text of a number that an f32 represents."""
    if math.isnan(value):
        return '__builtin_nanf("")'
    if math.isinf(value):
        return "__builtin_inff()" if value > 0 else "(-__builtin_inff())"
    shortest = f"{np.float32(value)!s}f"
    return f"({shortest})" if math.copysign(1, value) < 0 else shortest
