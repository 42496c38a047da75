"""Element expressions of the language as expressions of values: an operation is its name in `values.operations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, isnan
from typing import assert_never

from attrs import frozen

from argus.core.dtype import DType
from argus.core.index import Cond, Held, Index
from argus.core.ir import (
    Both,
    Cast,
    Compare,
    Either,
    Elem,
    Get,
    Holds,
    Lit,
    Map,
    Neither,
    Num,
    Op,
    Test,
    Where,
)
from argus.core.ir.element_walk import children, dtype_of, nodes
from argus.core.proof.values.held.terms import chosen, number, unknown
from argus.core.values.expr import Expr, Infinity, compare, expr, fn
from argus.core.values.rewriting import nodes as values_in
from argus.core.walk import mentions


@frozen(eq=False)
class Elements:
    """What expressions of one statement mean.

    operands: what each read holds. place: an integer expression at the elements of the fragment. rounds: is told each
    type to which a number is rounded.
    """

    operands: Mapping[Get, Expr]
    place: Callable[[Index], Index]
    condition: Callable[[Cond], Cond]
    rounds: Callable[[DType], None]

    def of(self, elem: Elem) -> Expr:
        """The value of an expression."""
        match elem:
            case Get():
                return self.operands[elem]
            case Lit(value=value):
                return unknown("NaN") if isnan(value) else number(value)
            case Num(value=value):
                return unknown("an integer in registers") if mentions(value, (Held,)) else expr(self.place(value))
            case Cast(dtype=dtype, arg=arg):
                found = self.of(arg)
                if dtype.family != "float":
                    return fn(f"to {dtype}", found)
                if not dtype.holds(inf) and any(isinstance(each, Infinity) for each in values_in(found)):
                    return unknown(f"an infinite number as {dtype}")
                if dtype_of(arg) != dtype:
                    self.rounds(dtype)
                return found
            case Op(name=name, args=args):
                return fn(name, *map(self.of, args))
            case Where(test=test, then=then, other=other):
                return self._chosen(test, self.of(then), self.of(other))
            case _:
                assert_never(elem)

    def _chosen(self, test: Test, then: Expr, other: Expr) -> Expr:
        match test:
            case Holds(cond=cond):
                wrong = mentions(cond, (Held,))
                return (
                    unknown("a test of an integer in registers") if wrong else chosen(self.condition(cond), then, other)
                )
            case Compare(op=op, left=left, right=right):
                return chosen(compare(op, self.of(left), self.of(right)), then, other)
            case Both(parts=parts):
                for part in reversed(parts):
                    then = self._chosen(part, then, other)
                return then
            case Either(parts=parts):
                for part in reversed(parts):
                    other = self._chosen(part, then, other)
                return other
            case Neither(part=part):
                return self._chosen(part, other, then)
            case _:
                assert_never(test)


def not_of_reals(stmt: Map) -> str:
    """Why a statement does not compute as over the reals, up to rounding; empty if it does."""
    own = stmt.target.buffer.dtype
    for node in nodes(stmt.elem):
        if isinstance(node, Op) and (dtype_of(node) or own).family != "float":
            return "integer arithmetic in registers, which overflows"
        if isinstance(node, Cast) and node.dtype.family != "float" and (dtype_of(node.arg) or own).family != "float":
            return "an integer that is truncated to another type"
        kind = (dtype_of(node) or own) if isinstance(node, Op | Where | Cast) else own
        for part in children(node) if isinstance(node, Op | Where | Cast) else (node,) if node is stmt.elem else ():
            if isinstance(part, Lit) and not isnan(part.value) and not kind.holds(part.value):
                return f"{part.value:g}, which {kind} cannot represent"
    return "" if own.family == "float" else "integers in registers"
