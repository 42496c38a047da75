"""Evaluates expressions over sizes from a built kernel's description; they are parsed as data, never executed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from argus.core.diagnostic import ArgusError, Diagnostic

T = TypeVar("T")
IntArray = npt.NDArray[np.int64]
_NONE: Mapping[str, IntArray] = {}

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
    """The value of an expression of sums, products, quotients, minima, comparisons and and/or/not; true is 1.

    Raises ArgusError (E405) for any other construct, a size without a value, or a division by zero.
    """
    return _evaluate(expression, lambda root: _value(root, sizes))


def first_violation(
    condition: str, tensor: str, held: IntArray, sizes: Mapping[str, int], others: Mapping[str, IntArray] = _NONE
) -> tuple[int, ...] | None:
    """The index of the first element of an integer tensor that violates a data contract; None if all satisfy it.

    condition: over the sizes, the coordinates `i0`, `i1`, ..., and elements such as `expert[i0 + 1]`, whose indices are
    clamped to the tensor. others: other tensors that it reads; if one is empty, no element satisfies it. Raises
    ArgusError (E405) like `value_of`.
    """
    empty = any(not other.size for other in others.values())

    def first(root: ast.expr) -> tuple[int, ...] | None:
        for at in np.ndindex(held.shape):
            names = {**sizes, **{f"i{axis}": number for axis, number in enumerate(at)}}
            if empty or not _value(root, names, {**others, tensor: held}):
                return tuple(at)
        return None

    return _evaluate(condition, first)


def _evaluate(expression: str, of: Callable[[ast.expr], T]) -> T:
    try:
        return of(ast.parse(expression, mode="eval").body)
    except (SyntaxError, KeyError, ZeroDivisionError, RecursionError, ValueError) as problem:
        message = f"the expression `{expression[:200]}` of a launch cannot be evaluated: {problem}"
        repair = "build the kernel again, and give each size a value"
        raise ArgusError(Diagnostic("E405", "error", message, help=repair)) from None


def _value(node: ast.expr, sizes: Mapping[str, int], tensors: Mapping[str, IntArray] = _NONE) -> int:
    def of(part: ast.expr) -> int:
        return _value(part, sizes, tensors)

    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return sizes[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](of(left), of(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -of(operand)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return int(not of(operand))
        case ast.BoolOp(op=op, values=values):
            parts = [bool(of(value)) for value in values]
            return int(all(parts) if isinstance(op, ast.And) else any(parts))
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARED for op in ops):
            found = [of(each) for each in (left, *others)]
            return int(all(_COMPARED[type(op)](*found[place : place + 2]) for place, op in enumerate(ops)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLED:
            return _CALLED[name](*map(of, args))
        case ast.Subscript(value=ast.Name(id=name), slice=index) if name in tensors:
            held = tensors[name]
            at = [of(each) for each in (index.elts if isinstance(index, ast.Tuple) else (index,))]
            return int(held[tuple(min(max(0, number), size - 1) for number, size in zip(at, held.shape, strict=True))])
        case _:
            raise ValueError(f"`{ast.unparse(node)}` is not an expression over sizes")
