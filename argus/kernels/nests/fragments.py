"""The bodies of nests on register tiles: what a thread computes of the elements that it holds."""

# Without `from __future__ import annotations`: kernels are traced with this file.

import operator
from collections.abc import Callable, Mapping
from typing import Any, assert_never

import argus.language as lang
from argus.language import DType, bf16, f16, f32, i8, i32, i64
from argus.nests.affine import computed
from argus.nests.nest import (
    Apply,
    Both,
    Compare,
    Constant,
    Convert,
    Coordinate,
    Either,
    Expr,
    Inside,
    Negated,
    Read,
    Reduce,
    Select,
    Test,
)

TYPES: Mapping[str, DType] = {"f32": f32, "bf16": bf16, "f16": f16, "i64": i64, "i32": i32, "bool": i8}
"""The types of elements that templates load and store, by name."""
STORED: Mapping[str, DType] = {**TYPES, "i64": lang.i64, "i32": lang.i32}
"""Those of outputs, of which some are places."""


def _pow(x: Any, y: Any) -> Any:  # noqa: ANN401 reason: register tiles and numbers
    """x to the power of a number, by products for small whole ones."""
    if y == 0.5:
        return lang.sqrt(x)
    if isinstance(y, int | float) and y == int(y) and 0 < abs(y) <= 8:
        found = x
        for _ in range(abs(int(y)) - 1):
            found = found * x
        return found if y > 0 else 1.0 / found
    return lang.power(x, y)


_maximum: Any = lang.maximum


def _abs(x: Any) -> Any:  # noqa: ANN401 reason: a register tile
    return _maximum(x, -x)


def _quotient(x: Any, y: Any) -> Any:  # noqa: ANN401 reason: values and numbers
    return x / y


_FUNCTIONS: Mapping[str, Any] = {
    "neg": operator.neg,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _quotient,
    "pow": _pow,
    "abs": _abs,
    "max": lang.maximum_nan,
    "min": lang.minimum_nan,
    "tanh": lang.tanh_accurate,
}


_where: Any = lang.where


class Body:
    """Computes expressions on register tiles, in f32 or in a type of integers; shared ones are computed once.

    dtype: that type. load: the elements of a read as a tile, in that type. numbers: the integers of the kernel by
    name: sizes, and axes with the coordinates of the tile's elements. reduced: what a reduction is here, if the
    template computes some.
    """

    def __init__(
        self,
        load: Callable[[Read], Any],
        numbers: Mapping[str, Any],
        reduced: Callable[[Reduce], Any] | None = None,
        dtype: DType = f32,
    ) -> None:
        self._dtype = dtype
        self._load = load
        self._numbers = numbers
        self._reduced = reduced
        self._known: dict[int, Any] = {}
        self._loaded: dict[Read, Any] = {}

    def of(self, expr: Expr) -> Any:  # noqa: ANN401 reason: a register tile or a number
        if id(expr) not in self._known:
            self._known[id(expr)] = self._made(expr)
        return self._known[id(expr)]

    def _made(self, expr: Expr) -> Any:  # noqa: ANN401 reason: as above
        match expr:
            case Read():
                if expr not in self._loaded:
                    self._loaded[expr] = self._load(expr)
                return self._loaded[expr]
            case Constant(value=value):
                return value
            case Coordinate(index=index):
                return computed(index, self._numbers)
            case Apply(op=op, args=args):
                found = _FUNCTIONS.get(op) or getattr(lang, op)
                return found(*map(self.of, args))
            case Select(test=test, then=then, other=other):
                return _where(self._test(test), self.of(then), self.of(other))
            case Convert(dtype=dtype, arg=arg) if self._dtype.family == "int" and TYPES[dtype] != self._dtype:
                return self.of(arg).to(TYPES[dtype]).to(self._dtype)
            case Convert(arg=arg):
                return self.of(arg)  # what is computed in f32 is rounded where it is stored; integers wrap around
            case Reduce():
                assert self._reduced is not None, expr.op
                return self._reduced(expr)
            case _:
                assert_never(expr)

    def _test(self, test: Test) -> Any:  # noqa: ANN401 reason: a condition on elements or coordinates
        match test:
            case Compare(op=op, left=left, right=right):
                a, b = self.of(left), self.of(right)
                return a < b if op == "<" else a <= b if op == "<=" else a == b
            case Inside(condition=condition):
                return computed(condition, self._numbers)
            case Both(tests=tests):
                found: Any = True
                for each in tests:
                    found = self._test(each) & found
                return found
            case Either(tests=tests):
                found = False
                for each in tests:
                    found = self._test(each) | found
                return found
            case Negated(test=negated):
                found = self._test(negated)
                return not found if isinstance(found, bool) else ~found
            case _:
                assert_never(test)
