"""Compiles index expressions to Python closures: the simulator evaluates the same expressions many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from argus.core.index import Bin, Cmp, Cond, Const, Index, Sum, Sym, Symbol
from argus.core.walk import apply_number, evaluate

Function = Callable[[Mapping[Symbol, int]], int]


def function(node: Index | Cond) -> Function:
    """A function from symbol values to the expression's value; a condition gives 0 or 1.

    It raises KeyError for a symbol without a value or for an array, and ZeroDivisionError for a zero divisor.
    """
    match node:
        case Const(value=value):
            return lambda _: value
        case Sym(symbol=symbol):
            return lambda numbers: numbers[symbol]
        case Sum(terms=((only, factor),), constant=constant):
            one = function(only)
            return lambda numbers: one(numbers) * factor + constant
        case Sum(terms=terms, constant=constant):
            parts = tuple((function(term), factor) for term, factor in terms)
            return lambda numbers: sum((part(numbers) * factor for part, factor in parts), constant)
        case Bin():
            return _operation(node)
        case Cmp(op=op, left=left, right=right):
            low, high = function(left), function(right)
            if op == "<=":
                return lambda numbers: int(low(numbers) <= high(numbers))
            return lambda numbers: int(low(numbers) == high(numbers))
        case _:
            return lambda numbers: int(np.asarray(evaluate(node, numbers)))


def _operation(node: Bin) -> Function:
    op, first, second = node.op, function(node.left), function(node.right)
    match op:
        case "//":
            return lambda numbers: first(numbers) // second(numbers)
        case "%":
            return lambda numbers: first(numbers) % second(numbers)
        case "*":
            return lambda numbers: first(numbers) * second(numbers)
        case _:
            return lambda numbers: int(np.asarray(apply_number(op, first(numbers), second(numbers))))
