"""Sizes of torch's graphs as index expressions: numbers, symbols, and what torch computes of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from typing import Any

from argus.core import algebra
from argus.core.index import Index
from argus.nests.affine import computed
from argus.nests.nest import Apply, Constant, Coordinate, Expr, size
from argus.nests.simplify import apply
from argus.torch.tables.table import NotCovered


def index_of(number: Any) -> Index:  # noqa: ANN401 reason: an integer of torch's: an int, or a symbolic one
    """The index expression of an integer. Raises NotCovered for an operation that it does not have."""
    if isinstance(number, int):
        return algebra.const(int(number))
    return _of(number.node.expr)


def fraction_of(number: Any) -> Expr:  # noqa: ANN401 reason: a symbolic number of torch's
    """A number that torch computes of sizes, such as n / (n - 1) for the variance of a batch. Raises as `index_of`."""
    return _fraction(number.node.expr)


def of_sizes(number: Expr, sizes: Mapping[str, int]) -> float:
    """The value of such a number."""
    match number:
        case Constant(value=value):
            return value
        case Coordinate(index=index):
            return float(computed(index, sizes))
        case Apply(op=op, args=args):
            one, other = (of_sizes(each, sizes) for each in args)
            return one / other if op == "div" else one * other if op == "mul" else one + other
        case _:
            raise TypeError(number)


def _fraction(expr: Any) -> Expr:  # noqa: ANN401 reason: an expression of sympy
    if expr.is_number:
        return Constant(float(expr))
    name: str = type(expr).__name__
    match name:
        case "Add" | "Mul":
            first, *others = map(_fraction, expr.args)
            return reduce(partial(apply, name.lower()), others, first)
        case "FloatTrueDiv" | "IntTrueDiv":
            return apply("div", *map(_fraction, expr.args))
        case "ToFloat":
            return _fraction(expr.args[0])
        case _:
            return Coordinate(_of(expr))


def _of(expr: Any) -> Index:  # noqa: ANN401 reason: an expression of sympy
    if expr.is_Integer:
        return algebra.const(int(expr))
    if expr.is_Symbol:
        return size(str(expr))
    name: str = type(expr).__name__
    if name == "Pow" and expr.exp.is_Integer and int(expr.exp) > 0:
        name, parts = "Mul", [_of(expr.base)] * int(expr.exp)
    else:
        parts = [_of(each) for each in expr.args]
    match name:
        case "Add":
            return algebra.add(*parts)
        case "Mul":
            found: Index = algebra.const(1)
            for each in parts:
                found = algebra.mul(found, each)
            return found
        case "FloorDiv" | "CleanDiv":
            return algebra.floordiv(*parts)
        case "Mod" | "PythonMod":
            return algebra.mod(*parts)
        case "Max":
            return algebra.maximum(*parts)
        case "Min":
            return algebra.minimum(*parts)
        case _:
            raise NotCovered(f"a size computed by `{name}`")
