"""Index expressions as functions of numbers, for those that are asked for again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import and_, eq, floordiv, le, lshift, mod, mul, or_, rshift, xor

from argus.core.index import Bin, BinOp, Cmp, Cond, Const, Index, Sum, Sym, Symbol
from argus.core.walk import Value, evaluate

Numbers = Mapping[Symbol, Value]
Function = Callable[[Numbers], int]

_APPLY: Mapping[BinOp, Callable[[int, int], int]] = {
    "*": mul,
    "//": floordiv,
    "%": mod,
    "min": min,
    "max": max,
    "&": and_,
    "|": or_,
    "^": xor,
    "<<": lshift,
    ">>": rshift,
}


def function(node: Index | Cond) -> Function:
    """The function of an expression's symbols, each of which stands for one number."""
    match node:
        case Const(value=value):
            return lambda _: value
        case Sym(symbol=symbol):
            return lambda numbers: numbers[symbol]  # type: ignore[return-value]
        case Sum(terms=((only, factor),), constant=constant):
            one = function(only)
            return lambda numbers: one(numbers) * factor + constant
        case Sum(terms=terms, constant=constant):
            parts = tuple((function(term), factor) for term, factor in terms)
            return lambda numbers: sum((part(numbers) * factor for part, factor in parts), constant)
        case Bin(op=op, left=left, right=right):
            apply, first, second = _APPLY[op], function(left), function(right)
            return lambda numbers: apply(first(numbers), second(numbers))
        case Cmp(op=op, left=left, right=right):
            compare, low, high = le if op == "<=" else eq, function(left), function(right)
            return lambda numbers: int(compare(low(numbers), high(numbers)))
        case _:
            return lambda numbers: int(evaluate(node, numbers))  # type: ignore[arg-type]
