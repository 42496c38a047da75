"""Expressions over sizes, as a built kernel's description writes them: data to be read, never code to be run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from argus.core.diagnostic import ArgusError, Diagnostic

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: operator.mod,
}
_COMPARED: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_CALLED: dict[str, Callable[..., int]] = {"min": min, "max": max}


def value_of(expression: str, sizes: Mapping[str, int]) -> int:
    """The value of sums, products, quotients, minima, comparisons and their junctions; true is 1.

    Raises ArgusError (E405) for anything else, a size without a value, or a division by zero.
    """
    try:
        return _value(ast.parse(expression, mode="eval").body, sizes)
    except (SyntaxError, KeyError, ZeroDivisionError, RecursionError, ValueError) as problem:
        message = f"the expression `{expression[:200]}` of a launch has no value: {problem}"
        repair = "build the kernel again, and give each size a value"
        raise ArgusError(Diagnostic("E405", "error", message, help=repair)) from None


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return sizes[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, sizes)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return int(not _value(operand, sizes))
        case ast.BoolOp(op=op, values=values):
            parts = [bool(_value(value, sizes)) for value in values]
            return int(all(parts) if isinstance(op, ast.And) else any(parts))
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARED for op in ops):
            found = [_value(each, sizes) for each in (left, *others)]
            return int(all(_COMPARED[type(op)](*found[place : place + 2]) for place, op in enumerate(ops)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLED:
            return _CALLED[name](*(_value(arg, sizes) for arg in args))
        case _:
            raise ValueError(f"`{ast.unparse(node)}` is no expression over sizes")
