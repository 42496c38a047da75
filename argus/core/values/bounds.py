"""The value of an expression at many elements at once, in float64, with a bound on what rounding may change.

The bound is of any program that computes the expression in numbers with the given rounding, in any order of its sums.
It is NaN where the value has none (a division by 0, an element outside its tensor, a test that rounding decides).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from argus.core.index import Cond, Index, Symbol
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Infinity, Number, Reduce, Test, Whole
from argus.core.values.operations import OPERATIONS
from argus.core.values.rewriting import free_symbols
from argus.core.walk import IntArray, evaluate

Exact = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_ROUNDINGS = 8
"""How many roundings an operation may be off: the hardware's functions are approximations."""
_ELEMENTS = 1 << 22
"""How many elements of a reduction's body are computed at once."""
_ABSOLUTE = frozenset(("log", "log2", "sigmoid", "tanh"))
"""Functions whose error is that of numbers about 1, however small the result."""
_F32_MAX = float(np.finfo(np.float32).max)
_EXPONENTIAL = frozenset(("exp", "exp2", "sigmoid", "tanh", "pow"))
_SINGULAR = {"div": 1, "reciprocal": 0, "rsqrt": 0, "log": 0, "log2": 0}
"""The operand at whose zero the operation has no value."""
_EXACT = frozenset(("max", "min", "neg", "abs", "relu", "floor", "ceil", "round", "sign", "philox"))
_SLOPE_ONE = frozenset(("sin", "cos"))


@frozen(eq=False)
class Bounded:
    """Values, and for each the largest difference that rounding explains."""

    value: Exact
    error: Exact


@frozen(eq=False)
class Inputs:
    """What an expression is evaluated on.

    sizes: of the symbols. tensors: float64 arrays by name. integers: those that index expressions read. unit: the
    relative error of one operation or constant. addition: that of one addition, which is relative to what is added.
    relative: larger errors of single operations.
    """

    sizes: Mapping[Symbol, int]
    tensors: Mapping[str, npt.NDArray[Any]]
    integers: Mapping[str, npt.NDArray[Any]]
    unit: float
    addition: float
    relative: Mapping[str, float] = field(factory=dict[str, float])


def bounded(of: Expr, coords: Sequence[IntArray], inputs: Inputs) -> Bounded:
    """The expression at these coordinates (one array for each axis, broadcast together), with its error bounds."""
    shape = np.broadcast_shapes(*(axis.shape for axis in coords))
    with np.errstate(all="ignore"):
        found = _Level(inputs, tuple(coords), dict(inputs.sizes), len(shape), max(1, int(np.prod(shape)))).of(of)
    return Bounded(np.broadcast_to(found.value, shape), np.broadcast_to(found.error, shape))


class _Clipped:
    """The elements of an integer tensor, 0 outside: a branch that is not taken may read there."""

    def __init__(self, held: npt.NDArray[Any]) -> None:
        self.held = held

    def __getitem__(self, at: tuple[Any, ...]) -> npt.NDArray[Any]:
        found, inside = _elements(self.held.astype(np.int64), at)
        return np.where(inside, found, 0)


def _elements(held: npt.NDArray[Any], at: Sequence[Any]) -> tuple[npt.NDArray[Any], Mask]:
    """The elements at these coordinates, and where they lie in the array."""
    places = [np.asarray(each) for each in at]
    inside = [(each >= 0) & (each < size) for each, size in zip(places, held.shape, strict=True)]
    within: Mask = np.asarray(reduce(np.logical_and, inside, np.True_))
    if not held.size:
        return np.zeros(within.shape, held.dtype), np.zeros(within.shape, np.bool_)
    kept = tuple(np.clip(each, 0, size - 1) for each, size in zip(places, held.shape, strict=True))
    return held[kept], within


@define(eq=False)
class _Level:
    """Evaluation inside some reductions, each of whose variables is an axis in front. known: values found so far."""

    inputs: Inputs
    coords: tuple[IntArray, ...]
    env: dict[Symbol, Any]
    rank: int
    width: int
    variable: Symbol | None = None
    outer: _Level | None = None
    known: dict[Expr, Bounded] = field(factory=dict[Expr, Bounded])

    def of(self, root: Expr) -> Bounded:
        if self.outer is not None and self.variable not in free_symbols(root):
            return self.outer.of(root)
        found = self.known.get(root)
        if found is None:
            found = self.known[root] = self._computed(root)
        return found

    def _computed(self, root: Expr) -> Bounded:
        match root:
            case Number(value=value):
                number = float(value)
                same = float(np.float32(number)) == number
                return _exact(number, 0.0 if same else self.inputs.unit * abs(number))
            case Infinity(sign=sign):
                return _exact(sign * np.inf)
            case Whole(index=index):
                return _exact(np.asarray(self._integer(index), np.float64))
            case Element(tensor=tensor, at=at):
                found, inside = _elements(self.inputs.tensors[tensor], [self._integer(each) for each in at])
                return _exact(np.where(inside, found.astype(np.float64), np.nan))
            case Fn(name=name, args=args):
                return self._applied(name, [self.of(each) for each in args])
            case Choose(test=test, then=then, other=other):
                return self._chosen(test, self.of(then), self.of(other))
            case Reduce():
                return self._reduced(root)

    def _integer(self, node: Index | Cond) -> Any:  # noqa: ANN401 reason: a number or an array
        arrays = {name: cast(IntArray, _Clipped(held)) for name, held in self.inputs.integers.items()}
        return evaluate(node, self.env, self.coords, arrays)

    # -- operations ------------------------------------------------------------------------------------

    def _applied(self, name: str, args: list[Bounded]) -> Bounded:
        entry = OPERATIONS.get(name)
        if entry is None:
            return _exact(np.nan)
        value = _number(entry.number, [each.value for each in args])
        spread = args[0].error if name in _SLOPE_ONE else _spread(entry.number, args, value)
        error = spread + self._rounding(name, value, args)
        at = _SINGULAR.get(name)
        if at is not None:
            error = np.where(np.abs(args[at].value) <= args[at].error, np.nan, error)
        known = _where_finite(value, error)
        return Bounded(value, np.where(_overflows(value, args), np.nan, known) if name in _EXPONENTIAL else known)

    def _rounding(self, name: str, value: Exact, args: list[Bounded]) -> Exact:
        """What rounding of the operation itself, and of the arguments of an exponential, may change."""
        unit = self.inputs.unit
        if name in _EXACT:
            return np.zeros(np.shape(value))
        if name in ("add", "sub"):
            size = reduce(np.add, [np.abs(each.value) + each.error for each in args])
            return 2 * self.inputs.addition * (np.abs(value) + size)
        relative = max(_ROUNDINGS * unit, self.inputs.relative.get(name, 0.0))
        size = np.abs(value) + (1.0 if name in _ABSOLUTE else 0.0)
        if name in _EXPONENTIAL:
            steep = 1 + sum((np.abs(each.value) for each in args), np.zeros(()))
            size = np.where(size == 0, 0.0, size * steep)  # exp(-inf) is 0
        return relative * size

    def _chosen(self, test: Test, then: Bounded, other: Bounded) -> Bounded:
        if not isinstance(test, Compare):
            holds = np.asarray(self._integer(test), np.bool_)
            return Bounded(np.where(holds, then.value, other.value), np.where(holds, then.error, other.error))
        left, right = self.of(test.left), self.of(test.right)
        gap, error = right.value - left.value, left.error + right.error
        same = left.value == right.value  # equal infinities have no difference
        holds = (gap > 0) & ~same if test.op == "<" else (gap >= 0) | same if test.op == "<=" else (gap == 0) | same
        open_ = ((error > 0) & (np.abs(gap) <= error)) | np.isnan(left.value) | np.isnan(right.value) | np.isnan(error)
        value, bound = np.where(holds, then.value, other.value), np.where(holds, then.error, other.error)
        return Bounded(value, np.where(open_, np.nan, bound))

    # -- reductions ------------------------------------------------------------------------------------

    def _reduced(self, root: Reduce) -> Bounded:
        low, high = (np.asarray(self._integer(end)) for end in (root.low, root.high))
        start, stop = int(low.min(initial=_FAR)), int(high.max(initial=-_FAR))
        tally = _TALLIES[root.op]()
        step = max(1, _ELEMENTS // self.width)
        for first in range(start, stop, step):
            count = min(step, stop - first)
            places = np.arange(first, first + count, dtype=np.int64).reshape(-1, *(1,) * self.rank)
            inner = _Level(
                self.inputs,
                self.coords,
                {**self.env, root.variable: places},
                self.rank + 1,
                self.width * count,
                root.variable,
                self,
            )
            there = np.asarray(inner._integer(root.where), np.bool_) & (places >= low) & (places < high)
            tally.add(inner.of(root.body), there)
        return tally.result(self.inputs)


_FAR = 1 << 40


@define(eq=False)
class _Sum:
    """A sum in any order: each addition may round by the sizes of all terms."""

    value: Exact = field(factory=lambda: np.zeros(()))
    error: Exact = field(factory=lambda: np.zeros(()))
    size: Exact = field(factory=lambda: np.zeros(()))
    count: Exact = field(factory=lambda: np.zeros(()))

    def add(self, body: Bounded, there: Mask) -> None:
        value, error, there = np.broadcast_arrays(body.value, body.error, there)
        self.value = self.value + np.where(there, value, 0.0).sum(0)
        self.error = self.error + np.where(there, error, 0.0).sum(0)
        self.size = self.size + np.where(there, np.abs(value), 0.0).sum(0)
        self.count = self.count + there.sum(0)

    def result(self, inputs: Inputs) -> Bounded:
        return Bounded(self.value, _where_finite(self.value, self.error + inputs.addition * self.count * self.size))


@define(eq=False)
class _Product:
    """A product in any order. size: of the factors with their errors."""

    value: Exact = field(factory=lambda: np.ones(()))
    size: Exact = field(factory=lambda: np.ones(()))
    count: Exact = field(factory=lambda: np.zeros(()))

    def add(self, body: Bounded, there: Mask) -> None:
        value, error, there = np.broadcast_arrays(body.value, body.error, there)
        self.value = self.value * np.where(there, value, 1.0).prod(0)
        self.size = self.size * np.where(there, np.abs(value) + error, 1.0).prod(0)
        self.count = self.count + there.sum(0)

    def result(self, inputs: Inputs) -> Bounded:
        error = self.size - np.abs(self.value) + inputs.unit * self.count * self.size
        return Bounded(self.value, _where_finite(self.value, error))


@define(eq=False)
class _Extremum:
    """The greatest of the values times `sign`."""

    sign: int
    value: Exact = field(factory=lambda: np.full((), -np.inf))
    error: Exact = field(factory=lambda: np.zeros(()))

    def add(self, body: Bounded, there: Mask) -> None:
        value, error, there = np.broadcast_arrays(self.sign * body.value, body.error, there)
        self.value = np.maximum(self.value, np.where(there, value, -np.inf).max(0, initial=-np.inf))
        self.error = np.maximum(self.error, np.where(there, error, 0.0).max(0, initial=0.0))

    def result(self, inputs: Inputs) -> Bounded:
        del inputs
        return Bounded(self.sign * self.value, self.error)


_Tally = _Sum | _Product | _Extremum
_TALLIES: Mapping[str, Callable[[], _Tally]] = {
    "sum": _Sum,
    "product": _Product,
    "max": lambda: _Extremum(1),
    "min": lambda: _Extremum(-1),
}


def _exact(value: float | Exact, error: float = 0.0) -> Bounded:
    held = np.asarray(value, np.float64)
    return Bounded(held, np.where(np.isnan(held), np.nan, np.full(held.shape, error)))


def _number(meaning: Callable[..., np.float64], args: Sequence[Exact]) -> Exact:
    return np.asarray(meaning(*args), np.float64)


def _spread(meaning: Callable[..., np.float64], args: Sequence[Bounded], value: Exact) -> Exact:
    """How far the operation moves when its operands move to the ends of their intervals; NaN beyond its domain."""
    spread = np.zeros(np.shape(value))
    if not any(each.error.any() for each in args):
        return spread
    for signs in product((-1, 1), repeat=len(args)):
        corner = _number(meaning, [x.value + sign * x.error for x, sign in zip(args, signs, strict=True)])
        spread = np.maximum(spread, np.where(corner == value, 0.0, np.abs(corner - value)))
    return spread


def _overflows(value: Exact, args: Sequence[Bounded]) -> npt.NDArray[np.bool_]:
    """Where an operation on numbers leaves the range of f32: products with what it returns may not be numbers."""
    finite = np.ones(np.shape(value), np.bool_)
    for each in args:
        finite &= np.isfinite(each.value)
    return finite & (np.abs(value) > _F32_MAX)


def _where_finite(value: Exact, error: Exact) -> Exact:
    """The error, 0 of an infinity (which is compared exactly), NaN of a value that there is not."""
    return np.where(np.isnan(value), np.nan, np.where(np.isinf(value) & ~np.isnan(error), 0.0, error))
