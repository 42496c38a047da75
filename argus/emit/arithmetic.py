"""C text of one element-wise operation: conversions of its operands, and the rounding of its result."""

from __future__ import annotations

import math
from collections.abc import Sequence

from argus.core.dtype import DType, e4m3, f32
from argus.core.elementwise import ELEMENT_OPS, INTEGER_OPS
from argus.core.span import Span
from argus.emit.faults import not_built
from argus.emit.scope import c_type

Typed = tuple[str, DType | None]
"""C text and the type in which it is computed; None for a number, which takes the type of the other operand."""


def operation(name: str, args: Sequence[Typed], target: str, span: Span) -> Typed:
    """An operation of the table of element-wise operations, computed in f32 and rounded to the operands' type, as NumPy
    does for narrower floats. target: the machine whose spelling is used. Raises ArgusError (E501) if it has none.
    """
    dtype = next((own for _, own in args if own is not None), None)
    if name not in ELEMENT_OPS or target not in ELEMENT_OPS[name].spelling:
        raise not_built(f"the element-wise operation `{name}`", span)
    if dtype is not None and dtype.family == "int":
        if name not in INTEGER_OPS:
            raise not_built(f"`{name}` of integers", span)
        return INTEGER_OPS[name].format(*(converted(arg, dtype) for arg in args)), dtype
    text = ELEMENT_OPS[name].spelling[target].format(*(_operand(arg, dtype) for arg in args))
    return (converted((text, f32), dtype) if dtype is not None else text), dtype


def widened(typed: Typed) -> str:
    """C text of the value, a narrower float converted to f32."""
    text, dtype = typed
    if dtype == e4m3:
        return f"of_e4m3({text})"
    return f"({c_type(f32)}){text}" if dtype is not None and dtype.bits < f32.bits else text


def converted(typed: Typed, dtype: DType) -> str:
    """C text of the value converted to a type, rounded to the nearest."""
    text, own = typed
    if own == dtype:
        return text
    text = widened(typed) if own == e4m3 else text
    return f"to_e4m3({text})" if dtype == e4m3 else f"({c_type(dtype)}){text}"


def _operand(typed: Typed, dtype: DType | None) -> str:
    """An operand of an operation on floats of type `dtype`; a number among them takes their type."""
    if dtype == e4m3 and typed[1] is None:
        return widened((converted(typed, e4m3), e4m3))
    return widened(typed)


def compared(left: Typed, op: str, right: Typed) -> str:
    """C text of a comparison. A number takes the type of the other side."""
    dtype = left[1] or right[1]
    if dtype is not None and dtype.family == "int":
        return f"({converted(left, dtype)} {op} {converted(right, dtype)})"
    return f"({_operand(left, dtype)} {op} {_operand(right, dtype)})"


def literal(value: float) -> str:
    """C text of a number as an f32."""
    if math.isnan(value):
        return '__builtin_nanf("")'
    if math.isinf(value):
        return "__builtin_inff()" if value > 0 else "(-__builtin_inff())"
    return f"{value!r}f" if value >= 0 else f"({value!r}f)"
