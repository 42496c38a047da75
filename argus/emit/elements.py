"""Emit `Map`: element-wise arithmetic on a thread's registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np
from attrs import frozen

from argus.core import algebra
from argus.core.algebra import coord
from argus.core.dtype import DType
from argus.core.index import Index
from argus.core.ir import Both, Cast, Compare, Either, Elem, Get, Holds, Lit, Map, Neither, Num, Op, Test, Where
from argus.core.ir.element_walk import dtype_of, gets
from argus.core.layout import TV
from argus.core.span import Span
from argus.core.walk import substitute
from argus.emit.arithmetic import Typed, compared, converted, literal, number_as, operation, widened
from argus.emit.bits import linear_in_bits
from argus.emit.faults import not_built
from argus.emit.fp8 import conversion_lines
from argus.emit.loops import unrolled_loops
from argus.emit.registers import register_table
from argus.emit.scope import Scope, is_whole, layout_of, whole_register_buffer

CHOSEN = """\
// Register `at` of those that a thread holds: they stay in registers, which have no addresses.
template <int N, class T> HELPER T chosen(const T (&held)[N], int at) {
    T left[N];
    #pragma unroll
    for (int n = 0; n < N; ++n) left[n] = held[n];
    #pragma unroll
    for (int bit = 1; bit < N; bit *= 2)
        #pragma unroll
        for (int n = 0; n + bit < N; n += 2 * bit) left[n] = at & bit ? left[n + bit] : left[n];
    return left[0];
}
"""


def chooses_registers(lines: Sequence[str]) -> bool:
    """Whether lines of a kernel use `chosen`."""
    return any("chosen(" in line for line in lines)


def map_lines(stmt: Map, scope: Scope) -> list[str]:
    """Compute every register value of a thread: one unrolled loop if all have the same form, else one line each."""
    target = whole_register_buffer(stmt.target, None, stmt.span)
    layout = layout_of(target)
    count = layout.values.size()
    converted_at_once = conversion_lines(stmt, scope)
    if converted_at_once is not None:
        return converted_at_once
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
    table = register_table(get.view, layout, span, get.at)
    distance = table - np.indices(table.shape, dtype=np.int64)[1]
    return int(distance[0, 0]) if (distance == distance[0, 0]).all() else None


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
        return converted(self._operand(elem, dtype), dtype)

    def _operand(self, elem: Elem, dtype: DType) -> Typed:
        """An operand of an operation on elements of type `dtype`: a number is rounded to that type."""
        return literal(elem.value, dtype) if isinstance(elem, Lit) else number_as(self.text(elem), dtype)

    @property
    def _own(self) -> DType:
        """The type of an operation on numbers alone: that of the assigned elements, as in the interpreter."""
        return self.stmt.target.buffer.dtype

    def text(self, elem: Elem) -> Typed:
        match elem:
            case Lit(value=value):
                return literal(value, self._own)[0], None
            case Num(value=value):
                return f"({self.scope.text.index(substitute(value, {}, self.at))})", None
            case Get():
                return self._get(elem)
            case Op(name=name, args=args):
                dtype = dtype_of(elem) or self._own
                operands = [self._operand(arg, dtype) for arg in args]
                return self._result(elem, operation(name, operands, dtype, self.scope.target, self.span))
            case Cast(dtype=dtype, arg=arg):
                return self.text_as(arg, dtype), dtype
            case Where(test=test, then=then, other=other):
                dtype = dtype_of(elem) or self._own
                left, right = (self.text_as(each, dtype) for each in (then, other))
                return self._result(elem, (f"({self.test(test)} ? {left} : {right})", dtype))
            case _:
                assert_never(elem)

    def _result(self, elem: Elem, typed: Typed) -> Typed:
        """A result of numbers alone is a number, too."""
        if dtype_of(elem) is not None:
            return typed
        return (typed[0] if self._own.family == "int" else widened(typed)), None

    def test(self, test: Test) -> str:
        match test:
            case Holds(cond=cond):
                return f"({self.scope.text.cond(substitute(cond, {}, self.at))})"
            case Compare(op=op, left=left, right=right):
                dtype = dtype_of(left) or dtype_of(right) or self._own
                return compared(self._operand(left, dtype), op, self._operand(right, dtype), dtype)
            case Both(parts=parts):
                return f"({' && '.join(self.test(part) for part in parts) or 'true'})"
            case Either(parts=parts):
                return f"({' || '.join(self.test(part) for part in parts) or 'false'})"
            case Neither(part=part):
                return f"!{self.test(part)}"
            case _:
                assert_never(test)

    def _get(self, elem: Get) -> Typed:
        buffer, layout = elem.view.buffer, layout_of(self.stmt.target.buffer)
        value = self.value
        if isinstance(value, int):
            same = is_whole(elem.view, layout) and _same_coordinates(elem)
            value = value if same else self._register(elem, layout, value)
        elif distance := _register_distance(elem, layout, self.span):
            value = f"{value} + {distance}"
        if isinstance(self.value, int) and isinstance(value, str) and buffer not in self.scope.accumulators:
            return f"chosen({self.scope.names.buffers[buffer]}, {value})", buffer.dtype
        return self.scope.element(buffer, value), buffer.dtype

    def _register(self, elem: Get, layout: TV, value: int) -> int | str:
        """The register that holds the operand of a value: an expression of the thread index where threads differ."""
        own = register_table(elem.view, layout, self.span, elem.at)[:, value]
        if (own == own[0]).all():
            return int(own[0])
        found = linear_in_bits(own, self.scope.thread)
        if found is None:
            raise not_built(f"registers of `{elem.view.buffer.name}` that differ between threads", self.span)
        return self.scope.text.factor(found)
