"""The value of an expression at given sizes and elements: in float64, or exactly in rational numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import cast

import numpy as np
from attrs import field, frozen

from argus.core.index import Index, Symbol
from argus.core.values.drawn import INTEGERS, Drawn
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Infinity,
    Number,
    Reduce,
    Test,
    Whole,
)
from argus.core.values.floats import Floats, Points
from argus.core.values.operations import OPERATIONS
from argus.core.values.rewriting import free_symbols
from argus.core.walk import evaluate as evaluate_index

Numeric = float | Fraction
_Key = tuple[Expr, tuple[int | None, ...]]


class NoExactValueError(Exception):
    """An operation has no exact value here: a division by 0, a root."""


@lru_cache(maxsize=1 << 13)
def _free(of: Expr) -> tuple[Symbol, ...]:
    """What the value depends on, besides elements."""
    return tuple(free_symbols(of))


@frozen
class Evaluation:
    """Values at these sizes. exact: in Fractions; an operation without exact values is then an arbitrary function."""

    sizes: Mapping[Symbol, int]
    elements: Drawn
    exact: bool = False
    seed: int = 0
    _known: dict[_Key, Numeric] = field(factory=dict[_Key, Numeric], init=False)
    _points: Points = field(init=False)

    def __attrs_post_init__(self) -> None:
        numbers = {symbol: np.full(1, size, np.int64) for symbol, size in self.sizes.items()}
        object.__setattr__(self, "_points", Points(numbers, 1))

    def value(self, of: Expr) -> Numeric:
        """The number: a float, or a Fraction (infinities are floats). Raises NoExactValueError."""
        with np.errstate(all="ignore"):
            if not self.exact:
                return float(Floats(self.elements, self.seed).at(of, self._points)[0])
            return self._value(of, dict(self.sizes))

    def _value(self, of: Expr, env: dict[Symbol, int]) -> Numeric:
        key = (of, tuple(env.get(symbol) for symbol in _free(of)))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._computed(of, env)
        return found

    def _computed(self, of: Expr, env: dict[Symbol, int]) -> Numeric:
        match of:
            case Number(value=value):
                return value
            case Infinity(sign=sign):
                return sign * float("inf")
            case Whole(index=index):
                return Fraction(_int(index, env))
            case Element(tensor=tensor, at=at):
                return self.elements(tensor, tuple(_int(x, env) for x in at))
            case Fn(name=name, args=args):
                return self._applied(name, [self._value(each, env) for each in args])
            case Choose(test=test, then=then, other=other):
                holds = self._test(test, env)
                return float("nan") if holds is None else self._value(then if holds else other, env)
            case Reduce():
                return self._reduced(of, env)

    def _test(self, test: Test, env: dict[Symbol, int]) -> bool | None:
        """Whether the test holds; None where a side has no value."""
        if not isinstance(test, Compare):
            return bool(evaluate_index(test, env, arrays=INTEGERS))
        left, right = self._value(test.left, env), self._value(test.right, env)
        if left != left or right != right:  # noqa: PLR0124 reason: NaN
            return None
        return bool(left < right if test.op == "<" else left <= right if test.op == "<=" else left == right)

    def _applied(self, name: str, args: list[Numeric]) -> Numeric:
        entry = OPERATIONS.get(name)
        if any(isinstance(each, float) for each in args):
            raise NoExactValueError
        if entry is None or entry.exact is None:
            return self._arbitrary(name, args)
        try:
            return entry.exact(*args)
        except ZeroDivisionError as error:
            raise NoExactValueError from error

    def _arbitrary(self, name: str, args: list[Numeric]) -> Fraction:
        """The value of a function of which nothing is known: one number for equal arguments."""
        data = hashlib.blake2b(f"{self.seed}/{name}/{args}".encode(), digest_size=8).digest()
        return Fraction(1 + int.from_bytes(data, "little") % 31, 8)

    def _reduced(self, of: Reduce, env: dict[Symbol, int]) -> Numeric:
        numbers: list[Numeric] = []
        for each in range(_int(of.low, env), _int(of.high, env)):
            inside = {**env, of.variable: each}
            if evaluate_index(of.where, inside, arrays=INTEGERS):
                numbers.append(self._value(of.body, inside))
        if any(each != each for each in numbers):  # noqa: PLR0124 reason: as in `_test`
            return float("nan")
        match of.op:
            case "sum":
                return sum(numbers, Fraction(0))
            case "product":
                return prod(numbers, start=Fraction(1))
            case "max":
                return max(numbers, default=-float("inf"))
            case "min":
                return min(numbers, default=float("inf"))


def _int(index: Index, env: Mapping[Symbol, int]) -> int:
    return int(cast(int, evaluate_index(index, env, arrays=INTEGERS)))
