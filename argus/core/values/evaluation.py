"""The value of an expression at given sizes and elements: in float64, or exactly in rational numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import isfinite, prod, sin
from typing import Any, cast

import numpy as np
from attrs import field, frozen

from argus.core.index import Index, Symbol
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
from argus.core.values.operations import CLOSE, OPERATIONS
from argus.core.values.rewriting import free_symbols
from argus.core.walk import evaluate as evaluate_index

Numeric = float | Fraction
_Key = tuple[Expr, tuple[int | None, ...]]
Elements = Callable[[str, tuple[int, ...]], Fraction]


def seeded(seed: int, *, low: int = -8, high: int = 8, per: int = 4) -> Elements:
    """Elements drawn by a hash from {low/per .. high/per}: equal in every process."""

    def element(tensor: str, at: tuple[int, ...]) -> Fraction:
        data = hashlib.blake2b(f"{seed}/{tensor}/{at}".encode(), digest_size=8).digest()
        return Fraction(low + int.from_bytes(data, "little") % (high - low + 1), per)

    return element


class _Array:
    """The elements of an integer tensor: 0 to 3, by a hash."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, at: tuple[int, ...]) -> int:
        return hashlib.blake2b(f"{self.name}/{at}".encode(), digest_size=1).digest()[0] % 4


class _Arrays(dict[str, Any]):
    def __missing__(self, name: str) -> _Array:
        return _Array(name)

    def __bool__(self) -> bool:  # `walk.evaluate` takes an empty mapping for none
        return True


INTEGERS: Mapping[str, Any] = _Arrays()
"""The elements of every integer tensor."""


def _is_exact(of: Expr) -> bool:
    """Whether float64 has the value exactly for elements that are small multiples of a power of 2: no division."""
    match of:
        case Fn(name="add" | "sub" | "mul" | "neg" | "max" | "min" | "abs" | "relu", args=args):
            return all(map(_is_exact, args))
        case Reduce(body=body):
            return _is_exact(body)
        case Number(value=value):
            return value.denominator & (value.denominator - 1) == 0
        case Choose(then=then, other=other):
            return _is_exact(then) and _is_exact(other)
        case Fn():
            return False
        case Infinity() | Whole() | Element():
            return True


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
    elements: Elements
    exact: bool = False
    seed: int = 0
    _known: dict[_Key, Numeric] = field(factory=dict[_Key, Numeric], init=False)

    def value(self, of: Expr) -> Numeric:
        """The number: a float, or a Fraction (infinities are floats). Raises NoExactValueError."""
        with np.errstate(all="ignore"):
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
                return value if self.exact else float(value)
            case Infinity(sign=sign):
                return sign * float("inf")
            case Whole(index=index):
                return self._number(Fraction(self._int(index, env)))
            case Element(tensor=tensor, at=at):
                return self._number(self.elements(tensor, tuple(self._int(x, env) for x in at)))
            case Fn(name=name, args=args):
                return self._applied(name, [self._value(each, env) for each in args])
            case Choose(test=test, then=then, other=other):
                holds = self._test(test, env)
                return float("nan") if holds is None else self._value(then if holds else other, env)
            case Reduce():
                return self._reduced(of, env)

    def _number(self, value: Fraction) -> Numeric:
        return value if self.exact else float(value)

    @staticmethod
    def _int(index: Index, env: dict[Symbol, int]) -> int:
        return int(cast(int, evaluate_index(index, env, arrays=INTEGERS)))

    def _test(self, test: Test, env: dict[Symbol, int]) -> bool | None:
        """Whether the test holds; None where a side has no value, or rounding decides."""
        if not isinstance(test, Compare):
            return bool(evaluate_index(test, env, arrays=INTEGERS))
        left, right = self._value(test.left, env), self._value(test.right, env)
        if left != left or right != right or self._by_rounding(test, left, right):  # noqa: PLR0124 reason: NaN
            return None
        return bool(left < right if test.op == "<" else left <= right if test.op == "<=" else left == right)

    def _by_rounding(self, test: Compare, left: Numeric, right: Numeric) -> bool:
        """Whether the sides are close in float64, and not exact: in the reals the test may be another."""
        if (
            self.exact
            or not (isfinite(left) and isfinite(right))
            or abs(left - right) > CLOSE * max(1.0, abs(left), abs(right))
        ):
            return False
        return left != right or not (_is_exact(test.left) and _is_exact(test.right))

    def _applied(self, name: str, args: list[Numeric]) -> Numeric:
        entry = OPERATIONS.get(name)
        if self.exact:
            if any(isinstance(each, float) for each in args):
                raise NoExactValueError
            if entry is None or entry.exact is None:
                return self._arbitrary(name, args)
            try:
                return entry.exact(*args)
            except ZeroDivisionError as error:
                raise NoExactValueError from error
        if entry is None:
            return self._smooth(name, args)
        if entry.jumps is not None and entry.jumps(float(args[0])):
            return float("nan")
        return float(entry.number(*map(np.float64, args)))

    def _arbitrary(self, name: str, args: list[Numeric]) -> Fraction:
        """The value of a function of which nothing is known: one number for equal arguments."""
        data = hashlib.blake2b(f"{self.seed}/{name}/{args}".encode(), digest_size=8).digest()
        return Fraction(1 + int.from_bytes(data, "little") % 31, 8)

    def _smooth(self, name: str, args: list[Numeric]) -> float:
        """As `_arbitrary`, in float64: continuous, so that rounding of the arguments changes little."""
        waves = hashlib.blake2b(f"{self.seed}/{name}".encode(), digest_size=16).digest()
        terms = (sin((1 + waves[i % 8] / 64) * float(each) + waves[8 + i % 8] / 16) for i, each in enumerate(args))
        return 1.5 + sum(terms) if all(map(isfinite, args)) else float("nan")

    def _reduced(self, of: Reduce, env: dict[Symbol, int]) -> Numeric:
        numbers: list[Numeric] = []
        for each in range(self._int(of.low, env), self._int(of.high, env)):
            inside = {**env, of.variable: each}
            if evaluate_index(of.where, inside, arrays=INTEGERS):
                numbers.append(self._value(of.body, inside))
        if any(each != each for each in numbers):  # noqa: PLR0124 reason: as in `_test`
            return float("nan")
        match of.op:
            case "sum":
                return sum(numbers, self._number(Fraction(0)))
            case "product":
                return prod(numbers, start=self._number(Fraction(1)))
            case "max":
                return max(numbers, default=-float("inf"))
            case "min":
                return min(numbers, default=float("inf"))
