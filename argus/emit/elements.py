"""The text of `Map`: element-wise arithmetic on what a thread holds."""

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
from argus.emit.loops import loops
from argus.emit.registers import register_values
from argus.emit.scope import Scope, c_type, held_by, is_whole, layout_of

_INTEGER_OPS = frozenset({"neg", "add", "sub", "mul"})


def map_lines(stmt: Map, scope: Scope) -> list[str]:
    """Every value that a thread holds: a loop where all are alike, else a line each."""
    target = held_by(stmt.target, None, stmt.span)
    layout = layout_of(target)
    held = layout.values.size()
    if not _placed(stmt.elem) and all(_beside(get, layout, stmt.span) is not None for get in gets(stmt.elem)):
        text = _Elements(scope, stmt, "value", None).stored(stmt.elem, target.dtype)
        return loops([("value", held)], f"{scope.element(target, 'value')} = {text};")
    lines: list[str] = []
    for value in range(held):
        at = layout.coordinates_at(algebra.sym(scope.thread), value)
        text = _Elements(scope, stmt, value, at).stored(stmt.elem, target.dtype)
        lines.append(f"{scope.element(target, value)} = {text};")
    return lines


def _beside(get: Get, layout: TV, span: Span) -> int | None:
    """By how many registers each value read lies beyond the value computed; None if that differs among them."""
    if is_whole(get.view, layout) and _beneath(get):
        return 0
    found = register_values(get.view, layout, span, get.at)
    return found[0] if found == tuple(range(found[0], found[0] + len(found))) else None


def _beneath(get: Get) -> bool:
    """Whether the element is the one at the coordinates of the result."""
    return get.at == tuple(coord(axis) for axis in range(len(get.at)))


def _placed(elem: Elem) -> bool:
    """Whether an element's value depends on its coordinates."""
    match elem:
        case Num():
            return True
        case Lit() | Get():
            return False
        case Op(args=args):
            return any(_placed(arg) for arg in args)
        case Cast(arg=arg):
            return _placed(arg)
        case Where(test=test, then=then, other=other):
            return _test_placed(test) or _placed(then) or _placed(other)
        case _:
            assert_never(elem)


def _test_placed(test: Test) -> bool:
    match test:
        case Holds():
            return True
        case Compare(left=left, right=right):
            return _placed(left) or _placed(right)
        case Both(parts=parts) | Either(parts=parts):
            return any(_test_placed(part) for part in parts)
        case Neither(part=part):
            return _test_placed(part)
        case _:
            assert_never(test)


_Typed = tuple[str, DType | None]


@frozen
class _Elements:
    """C text of elements at one value. A literal has no type of its own: it takes that of its context."""

    scope: Scope
    stmt: Map
    value: int | str
    at: tuple[Index, ...] | None

    @property
    def span(self) -> Span:
        return self.stmt.span

    def stored(self, elem: Elem, dtype: DType) -> str:
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
                return f"({c_type(self._computed(dtype))}){self.text(arg)[0]}", dtype
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
                return f"({_widened(self.text(left))} {op} {_widened(self.text(right))})"
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
            same = is_whole(elem.view, layout) and _beneath(elem)
            value = value if same else register_values(elem.view, layout, self.span, elem.at)[value]
        elif beside := _beside(elem, layout, self.span):
            value = f"{value} + {beside}"
        return self.scope.element(buffer, value), self._computed(buffer.dtype)

    def _op(self, name: str, args: Sequence[_Typed]) -> _Typed:
        """Computed in f32 and rounded to the operands' type, as NumPy computes on 16-bit floats."""
        dtype = next((own for _, own in args if own is not None), None)
        if dtype is not None and dtype.family == "int" and name not in _INTEGER_OPS:
            raise not_built(f"`{name}` of integers", self.span)
        if name not in ELEMENT_OPS or self.scope.target not in ELEMENT_OPS[name].spelling:
            raise not_built(f"the element-wise operation `{name}`", self.span)
        text = ELEMENT_OPS[name].spelling[self.scope.target].format(*(_operand(arg, dtype) for arg in args))
        rounded = dtype is not None and dtype.bits == 16
        return (f"({c_type(dtype)}){text}" if rounded and dtype is not None else text), dtype

    def _computed(self, dtype: DType) -> DType:
        if dtype.bits < 16:
            raise not_built(f"arithmetic on {dtype}", self.span)
        return dtype


def _widened(typed: _Typed) -> str:
    text, dtype = typed
    return f"({c_type(f32)}){text}" if dtype is not None and dtype.bits == 16 else text


def _operand(typed: _Typed, dtype: DType | None) -> str:
    """An operand of an operation on `dtype`: a literal among integers is one, a 16-bit float becomes f32."""
    text, own = typed
    return (
        f"({c_type(dtype)}){text}" if own is None and dtype is not None and dtype.family == "int" else _widened(typed)
    )


def _literal(value: float) -> str:
    if math.isnan(value):
        return '__builtin_nanf("")'
    if math.isinf(value):
        return "__builtin_inff()" if value > 0 else "(-__builtin_inff())"
    return f"{value!r}f" if value >= 0 else f"({value!r}f)"
