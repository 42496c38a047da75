"""C text of one element-wise operation: casts of its operands, and the rounding of its result."""

from __future__ import annotations

import math
from collections.abc import Sequence

from argus.core.dtype import DType, f32
from argus.core.elementwise import ELEMENT_OPS
from argus.core.span import Span
from argus.emit.faults import not_built
from argus.emit.scope import c_type

_INTEGER_OPS = frozenset({"neg", "add", "sub", "mul"})

Typed = tuple[str, DType | None]
"""C text and the type in which it is computed; None for a number, which takes the type of the other operand."""


def operation(name: str, args: Sequence[Typed], target: str, span: Span) -> Typed:
    """An operation of the table of element-wise operations, computed in f32 and rounded to the operands' type, as NumPy
    does for 16-bit floats. target: the machine whose spelling is used. Raises ArgusError (E501) if it has none.
    """
    dtype = next((own for _, own in args if own is not None), None)
    if dtype is not None and dtype.family == "int" and name not in _INTEGER_OPS:
        raise not_built(f"`{name}` of integers", span)
    if name not in ELEMENT_OPS or target not in ELEMENT_OPS[name].spelling:
        raise not_built(f"the element-wise operation `{name}`", span)
    text = ELEMENT_OPS[name].spelling[target].format(*(_operand(arg, dtype) for arg in args))
    rounded = dtype is not None and dtype.bits == 16
    return (f"({c_type(dtype)}){text}" if rounded and dtype is not None else text), dtype


def widened(typed: Typed) -> str:
    """C text of the value, a 16-bit float converted to f32."""
    text, dtype = typed
    return f"({c_type(f32)}){text}" if dtype is not None and dtype.bits == 16 else text


def _operand(typed: Typed, dtype: DType | None) -> str:
    """An operand of an operation on `dtype`: cast a literal among integers, widen a 16-bit float to f32."""
    text, own = typed
    return f"({c_type(dtype)}){text}" if own is None and dtype is not None and dtype.family == "int" else widened(typed)


def literal(value: float) -> str:
    """C text of a number as an f32."""
    if math.isnan(value):
        return '__builtin_nanf("")'
    if math.isinf(value):
        return "__builtin_inff()" if value > 0 else "(-__builtin_inff())"
    return f"{value!r}f" if value >= 0 else f"({value!r}f)"
