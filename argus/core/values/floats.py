"""Values of expressions in float64, at all numbers of a bound variable at once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Node, Symbol
from argus.core.values.drawn import INTEGERS, Drawn
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Infinity, Number, Reduce, Test, Whole
from argus.core.values.operations import CLOSE, OPERATIONS
from argus.core.values.rewriting import free_symbols
from argus.core.walk import IntArray, Value
from argus.core.walk import evaluate as evaluate_index

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
_MOST = 1 << 22
"""Points at once, at most, unless they belong to one reduction."""
_REDUCTIONS: Mapping[str, tuple[np.ufunc, float]] = {
    "sum": (np.add, 0.0),
    "product": (np.multiply, 1.0),
    "max": (np.maximum, -np.inf),
    "min": (np.minimum, np.inf),
}


@define(eq=False)
class Points:
    """Where expressions are evaluated: a number of each symbol at each point.

    variables: those symbols that reductions bind. around: the points outside of the innermost reduction, and which of
    them each point belongs to; None at the outermost points, and where some of those outside have no point here.
    """

    numbers: Mapping[Symbol, IntArray]
    count: int
    variables: frozenset[Symbol] = frozenset()
    around: tuple[Points, IntArray] | None = None
    known: dict[Expr, FloatArray] = field(factory=dict[Expr, FloatArray], init=False)
    indices: dict[Node, Value] = field(factory=dict[Node, Value], init=False)
    _parts: dict[bytes, Points] = field(factory=dict[bytes, "Points"], init=False)

    def within(self, variable: Symbol, owners: IntArray, values: IntArray) -> Points:
        """Those with a number of one more variable. owners: the point here that each belongs to."""
        numbers = {symbol: own[owners] for symbol, own in self.numbers.items()}
        whole = len(np.unique(owners)) == self.count
        around = (self, owners) if whole else None
        return Points({**numbers, variable: values}, len(values), self.variables | {variable}, around)

    def at(self, which: IntArray) -> Points:
        """Some of the points."""
        key = which.tobytes()
        if key not in self._parts:
            numbers = {symbol: own[which] for symbol, own in self.numbers.items()}
            self._parts[key] = Points(numbers, len(which), self.variables)
        return self._parts[key]

    def outside_of(self, of: Expr) -> tuple[Points, IntArray] | None:
        """The points outside, if the expression does not vary within one of them."""
        bound = self.variables - (frozenset() if self.around is None else self.around[0].variables)
        return self.around if bound.isdisjoint(free_symbols(of)) else None


@lru_cache(maxsize=1 << 13)
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


@frozen
class Floats:
    """Values of expressions of these elements. seed: of functions of which nothing is known."""

    elements: Drawn
    seed: int

    def at(self, of: Expr, points: Points) -> FloatArray:
        """The value at each point; NaN where there is none, or rounding decides a test."""
        found = points.known.get(of)
        if found is None:
            outside = points.outside_of(of)
            found = self._computed(of, points) if outside is None else self.at(of, outside[0])[outside[1]]
            points.known[of] = found
        return found

    def _computed(self, of: Expr, points: Points) -> FloatArray:
        match of:
            case Number(value=value):
                return np.full(points.count, float(value))
            case Infinity(sign=sign):
                return np.full(points.count, sign * np.inf)
            case Whole(index=index):
                return _integers(index, points).astype(np.float64)
            case Element(tensor=tensor, at=at):
                found = self.elements.floats(tensor, [_integers(each, points) for each in at])
                return np.broadcast_to(found, (points.count,))
            case Fn(name=name, args=args):
                return self._applied(name, [self.at(each, points) for each in args], points)
            case Choose():
                return self._chosen(of, points)
            case Reduce():
                return self._reduced(of, points)

    def _applied(self, name: str, args: Sequence[FloatArray], points: Points) -> FloatArray:
        entry = OPERATIONS.get(name)
        if entry is None:
            return self._smooth(name, args, points)
        found = np.asarray(entry.number(*args), np.float64)
        return found if entry.jumps is None else np.where([entry.jumps(float(each)) for each in args[0]], np.nan, found)

    def _smooth(self, name: str, args: Sequence[FloatArray], points: Points) -> FloatArray:
        """A function of which nothing is known: continuous, so that rounding of the arguments changes little."""
        waves = hashlib.blake2b(f"{self.seed}/{name}".encode(), digest_size=16).digest()
        found = np.full(points.count, 1.5)
        for i, each in enumerate(args):
            found += np.sin((1 + waves[i % 8] / 64) * each + waves[8 + i % 8] / 16)
        finite = np.logical_and.reduce([np.isfinite(each) for each in args], initial=True)
        return np.where(finite, found, np.nan)

    def _chosen(self, of: Choose, points: Points) -> FloatArray:
        holds, known = self._test(of.test, points)
        found = np.full(points.count, np.nan)
        for branch, taken in ((of.then, holds & known), (of.other, ~holds & known)):
            which = np.flatnonzero(taken)
            if len(which) == points.count:
                return self.at(branch, points)
            if len(which):
                found[which] = self.at(branch, points.at(which))
        return found

    def _test(self, test: Test, points: Points) -> tuple[BoolArray, BoolArray]:
        """Where a test holds; where that is known: both sides have a value, and rounding does not decide."""
        if not isinstance(test, Compare):
            return _holds(test, points), np.ones(points.count, np.bool_)
        left, right = self.at(test.left, points), self.at(test.right, points)
        size = np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
        close = np.isfinite(left) & np.isfinite(right) & (np.abs(left - right) <= CLOSE * size)
        if _is_exact(test.left) and _is_exact(test.right):
            close &= left != right
        compare = {"<": np.less, "<=": np.less_equal, "==": np.equal}[test.op]
        return compare(left, right), ~(np.isnan(left) | np.isnan(right) | close)

    def _reduced(self, of: Reduce, points: Points) -> FloatArray:
        low, high = _integers(of.low, points), _integers(of.high, points)
        counts = np.maximum(high - low, 0)
        if counts.sum() > _MOST and points.count > 1:
            halves = np.array_split(np.arange(points.count), 2)
            return np.concatenate([self.at(of, points.at(half)) for half in halves])
        owners = np.repeat(np.arange(points.count), counts)
        values = np.arange(len(owners)) + np.repeat(low - (np.cumsum(counts) - counts), counts)
        inside = points.within(of.variable, owners, values)
        if of.where is not algebra.TRUE and len(owners):
            which = np.flatnonzero(_holds(of.where, inside))
            counts = np.bincount(owners[which], minlength=points.count)
            inside = points.within(of.variable, owners[which], values[which])
        combine, neutral = _REDUCTIONS[of.op]
        found, some = np.full(points.count, neutral), counts > 0
        if some.any():
            found[some] = combine.reduceat(self.at(of.body, inside), (np.cumsum(counts) - counts)[some])
        return found


def _integers(index: Index, points: Points) -> IntArray:
    found = evaluate_index(index, points.numbers, arrays=INTEGERS, known=points.indices)
    return np.broadcast_to(np.asarray(found, np.int64), (points.count,))


def _holds(cond: Cond, points: Points) -> BoolArray:
    found = evaluate_index(cond, points.numbers, arrays=INTEGERS, known=points.indices)
    return np.broadcast_to(np.asarray(cast("BoolArray | bool", found), np.bool_), (points.count,))
