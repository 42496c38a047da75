"""Emit `Map`: element-wise arithmetic on a thread's registers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

from attrs import frozen

from argus.core import algebra
from argus.core.algebra import coord
from argus.core.dtype import DType, f32
from argus.core.elementwise import ELEMENT_OPS
from argus.core.index import Index
from argus.core.ir import Both, Cast, Compare, Either, Elem, Get, Holds, Lit, Map, Neither, Num, Op, Test, Where
from argus.core.ir.element_walk import gets
from argus.core.layout import TV
from argus.core.span import Span
from argus.core.walk import substitute
from argus.emit.faults import not_built
from argus.emit.loops import unrolled_loops
from argus.emit.registers import register_values
from argus.emit.scope import Scope, c_type, is_whole, layout_of, whole_register_buffer

_INTEGER_OPS = frozenset({"neg", "add", "sub", "mul"})


def map_lines(stmt: Map, scope: Scope) -> list[str]:
    """Compute every register value of a thread: one unrolled loop if all have the same form, else one line each."""
    target = whole_register_buffer(stmt.target, None, stmt.span)
    layout = layout_of(target)
    count = layout.values.size()
    if not _depends_on_coordinates(stmt.elem) and all(
        _register_distance(get, layout, stmt.span) is not None for get in gets(stmt.elem)
    ):
        text = _ElementWriter(scope, stmt, "value", None).text_as(stmt.elem, target.dtype)
        return unrolled_loops([("value", count)], f"{scope.element(target, 'value')} = {text};")
    lines: list[str] = []
    for value in range(count):
        at = layout.coordinates_at(algebra.sym(scope.thread), value)
        text = _ElementWriter(scope, stmt, value, at).text_as(stmt.elem, target.dtype)
        lines.append(f"{scope.element(target, value)} = {text};")
    return lines


def _register_distance(get: Get, layout: TV, span: Span) -> int | None:
    """Register index read minus register index written; None if it is not the same for all values."""
    if is_whole(get.view, layout) and _same_coordinates(get):
        return 0
    found = register_values(get.view, layout, span, get.at)
    return found[0] if found == tuple(range(found[0], found[0] + len(found))) else None


def _same_coordinates(get: Get) -> bool:
    """Whether the operand's coordinates are those of the result."""
    return get.at == tuple(coord(axis) for axis in range(len(get.at)))


def _depends_on_coordinates(elem: Elem) -> bool:
    """Whether the expression uses the coordinates of its element."""
    match elem:
        case Num():
            return True
        case Lit() | Get():
            return False
        case Op(args=args):
            return any(_depends_on_coordinates(arg) for arg in args)
        case Cast(arg=arg):
            return _depends_on_coordinates(arg)
        case Where(test=test, then=then, other=other):
            return _test_depends_on_coordinates(test) or _depends_on_coordinates(then) or _depends_on_coordinates(other)
        case _:
            assert_never(elem)


def _test_depends_on_coordinates(test: Test) -> bool:
    match test:
        case Holds():
            return True
        case Compare(left=left, right=right):
            return _depends_on_coordinates(left) or _depends_on_coordinates(right)
        case Both(parts=parts) | Either(parts=parts):
            return any(_test_depends_on_coordinates(part) for part in parts)
        case Neither(part=part):
            return _test_depends_on_coordinates(part)
        case _:
            assert_never(test)


_Typed = tuple[str, DType | None]


@frozen
class _ElementWriter:
    """Emits an element expression at one register value. A literal takes its type from the context."""

    scope: Scope
    stmt: Map
    value: int | str
    at: tuple[Index, ...] | None

    @property
    def span(self) -> Span:
        return self.stmt.span

    def text_as(self, elem: Elem, dtype: DType) -> str:
        text, own = self.text(elem)
        return text if own == dtype else f"({c_type(dtype)}){text}"

    def text(self, elem: Elem) -> _Typed:
        match elem:
            case Lit(value=value):
                return _literal(value), None
            case Num(value=value):
                return f"({self.scope.text.index(substitute(value, {}, self.at))})", None
            case Get():
                return self._get(elem)
            case Op(name=name, args=args):
                return self._op(name, [self.text(arg) for arg in args])
            case Cast(dtype=dtype, arg=arg):
                return f"({c_type(self._arithmetic_dtype(dtype))}){self.text(arg)[0]}", dtype
            case Where(test=test, then=then, other=other):
                (yes, left), (no, right) = self.text(then), self.text(other)
                dtype = left or right
                own = f"({c_type(dtype)})" if dtype is not None else ""
                return f"({self.test(test)} ? {own}{yes} : {own}{no})", dtype
            case _:
                assert_never(elem)

    def test(self, test: Test) -> str:
        match test:
            case Holds(cond=cond):
                return f"({self.scope.text.cond(substitute(cond, {}, self.at))})"
            case Compare(op=op, left=left, right=right):
                return f"({_widen_to_f32(self.text(left))} {op} {_widen_to_f32(self.text(right))})"
            case Both(parts=parts):
                return f"({' && '.join(self.test(part) for part in parts) or 'true'})"
            case Either(parts=parts):
                return f"({' || '.join(self.test(part) for part in parts) or 'false'})"
            case Neither(part=part):
                return f"!{self.test(part)}"
            case _:
                assert_never(test)

    def _get(self, elem: Get) -> _Typed:
        buffer, layout = elem.view.buffer, layout_of(self.stmt.target.buffer)
        value = self.value
        if isinstance(value, int):
            same = is_whole(elem.view, layout) and _same_coordinates(elem)
            value = value if same else register_values(elem.view, layout, self.span, elem.at)[value]
        elif distance := _register_distance(elem, layout, self.span):
            value = f"{value} + {distance}"
        return self.scope.element(buffer, value), self._arithmetic_dtype(buffer.dtype)

    def _op(self, name: str, args: Sequence[_Typed]) -> _Typed:
        """Compute in f32 and round to the operands' type, as NumPy does for 16-bit floats."""
        dtype = next((own for _, own in args if own is not None), None)
        if dtype is not None and dtype.family == "int" and name not in _INTEGER_OPS:
            raise not_built(f"`{name}` of integers", self.span)
        if name not in ELEMENT_OPS or self.scope.target not in ELEMENT_OPS[name].spelling:
            raise not_built(f"the element-wise operation `{name}`", self.span)
        text = ELEMENT_OPS[name].spelling[self.scope.target].format(*(_operand(arg, dtype) for arg in args))
        rounded = dtype is not None and dtype.bits == 16
        return (f"({c_type(dtype)}){text}" if rounded and dtype is not None else text), dtype

    def _arithmetic_dtype(self, dtype: DType) -> DType:
        if dtype.bits < 16:
            raise not_built(f"arithmetic on {dtype}", self.span)
        return dtype


def _widen_to_f32(typed: _Typed) -> str:
    text, dtype = typed
    return f"({c_type(f32)}){text}" if dtype is not None and dtype.bits == 16 else text


def _operand(typed: _Typed, dtype: DType | None) -> str:
    """An operand of an operation on `dtype`: cast a literal among integers, widen a 16-bit float to f32."""
    text, own = typed
    return (
        f"({c_type(dtype)}){text}"
        if own is None and dtype is not None and dtype.family == "int"
        else _widen_to_f32(typed)
    )


def _literal(value: float) -> str:
    if math.isnan(value):
        return '__builtin_nanf("")'
    if math.isinf(value):
        return "__builtin_inff()" if value > 0 else "(-__builtin_inff())"
    return f"{value!r}f" if value >= 0 else f"({value!r}f)"
