"""Evaluates the proved content of an output, such as `relu(bf16(sum over k of A * B))`, in float64 with error bounds.

Only tags that are plain coordinates are understood: each tensor is then an array with named axes. Whatever else a
formula contains has no value here, and the output is not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from string import ascii_letters
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core import dtype as dtypes
from argus.core.algebra import TRUE
from argus.core.dtype import DType
from argus.core.elementwise import ELEMENT_OPS
from argus.core.index import Coord, Index, Read, Symbol
from argus.core.ir import Assert, Covers, Kernel, Tag, WrittenOnce, axes_of, walk
from argus.core.walk import evaluate, mentions, symbols
from argus.verifier.reference import F32_ROUNDING, Exact, rounding_of

Array = npt.NDArray[Any]
_ROUNDINGS_OF_AN_OPERATION = 8
"""How many roundings of its type an operation may be off: the hardware's functions are approximations."""
_APPROXIMATE = {"tanh": 2.0**-10}
"""Relative errors of instructions that are further off."""
_FOLDS = ("sum", "maximum")
_TOKEN = re.compile(r"\s*(-?\d[\w.+-]*|-?inf|[A-Za-z_]\w*|[(),*])")
_RESULT = re.compile(r"each element of `(\w+)` is (.*)")


class NoValueError(Exception):
    """The formula contains something that is not evaluated."""


def contents(results: Sequence[str]) -> dict[str, str]:
    """The formula of each output, from the results of a proof; none for an output with two."""
    found = [(match[1], match[2]) for line in results if (match := _RESULT.fullmatch(line)) is not None]
    names = [name for name, _ in found]
    return {name: form for name, form in found if names.count(name) == 1}


@frozen(eq=False)
class _Value:
    """An array with named axes. error: a bound on the difference of each element. unit: its type's rounding."""

    axes: tuple[str, ...]
    exact: Exact
    error: Exact
    unit: float

    def along(self, axes: Sequence[str]) -> tuple[Exact, Exact]:
        """The array and its error with these axes, in order; extent 1 along those that it lacks."""
        held = [name for name in axes if name in self.axes]
        order = [self.axes.index(name) for name in held]
        places = tuple(slice(None) if name in self.axes else None for name in axes)
        return self.exact.transpose(order)[places], self.error.transpose(order)[places]


@frozen(eq=False)
class Formula:
    """The formula of one output.

    kernels: those that tag inputs, the last of which claims the output; for each the caller's name of each parameter.
    sizes: those of the last one.
    """

    output: str
    form: str
    kernels: tuple[tuple[Kernel, Mapping[str, str]], ...]
    sizes: Mapping[Symbol, int]
    _tags: dict[str, tuple[str, ...]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_tags", dict(self._tagged()))

    def evaluate(self, arrays: Mapping[str, Array], dtype: DType) -> tuple[Exact, Exact] | None:
        """The output in float64 and the error bound of each element; None if the formula has no value here.

        arrays: the inputs by name, and the output for its shape. dtype: the output's type.
        """
        try:
            with np.errstate(all="ignore"):
                exact, error = self._value(arrays)
        except (NoValueError, ValueError, MemoryError):
            return None
        unit = rounding_of(dtype.numpy)
        return exact, error + unit * (np.abs(exact) + error)

    def _value(self, arrays: Mapping[str, Array]) -> tuple[Exact, Exact]:
        axes = self._claimed_axes()
        value = _Parser(self, arrays).value()
        if not set(value.axes) <= set(axes):
            raise NoValueError
        exact, error = value.along(axes)
        shape = arrays[self.output].shape
        return np.broadcast_to(exact, shape), np.broadcast_to(error, shape)

    def _tagged(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The names of each tensor's axes; a tensor with other tags, or tagged twice, has no entry."""
        seen: dict[str, list[tuple[str, ...]]] = {}
        for kernel, outside in self.kernels:
            for stmt in walk(kernel.body):
                if isinstance(stmt, Tag):
                    name = outside.get(stmt.view.buffer.name, "")
                    order = axes_of(stmt.view)
                    named = _axis_names(stmt.names, len(stmt.view.shape))
                    seen.setdefault(name, []).append(() if order is None else tuple(named[at] for at in order if named))
        return ((name, found[0]) for name, found in seen.items() if len(set(found)) == 1 and found[0])

    def axes(self, tensor: str) -> tuple[str, ...]:
        """The names of a tensor's axes. Raises NoValueError if its tags are not its coordinates."""
        if tensor not in self._tags:
            raise NoValueError
        return self._tags[tensor]

    def _claimed_axes(self) -> tuple[str, ...]:
        kernel, outside = self.kernels[-1]
        claims = [s.claim for s in walk(kernel.body) if isinstance(s, Assert)]
        mine = [c for c in claims if isinstance(c, WrittenOnce) and outside.get(c.view.buffer.name) == self.output]
        if len(mine) != 1 or mine[0].where is not TRUE:
            raise NoValueError
        named, order = _axis_names(mine[0].record, len(mine[0].view.shape)), axes_of(mine[0].view)
        if order is None or not named:
            raise NoValueError
        return tuple(named[at] for at in order)

    def sums_all(self, name: str, extent: int) -> bool:
        """Whether every claim about the sums over a name is that they cover this whole range."""
        claims = [s.claim for s in walk(self.kernels[-1][0].body) if isinstance(s, Assert)]
        mine = [claim for claim in claims if isinstance(claim, Covers) and claim.of.name == name]
        ends = {end for claim in mine for end in ((0, claim.low), (extent, claim.high))}
        known = all(symbols(end) <= self.sizes.keys() and not mentions(end, (Coord, Read)) for _, end in ends)
        whole = known and all(int(np.asarray(evaluate(end, self.sizes))) == wanted for wanted, end in ends)
        return bool(mine) and whole and all(claim.where is TRUE for claim in mine)


def _axis_names(record: Sequence[tuple[str, Index]], rank: int) -> dict[int, str]:
    """The name of each axis, where every name of the record is a coordinate of its own; else empty."""
    found = {index.axis: name for name, index in record if isinstance(index, Coord)}
    return found if len(record) == rank == len(found) else {}


class _Parser:
    """Evaluates a formula: names, numbers, `f(x, ...)`, `x * y`, `sum over k of x * y`, `sum of x over k`."""

    def __init__(self, formula: Formula, arrays: Mapping[str, Array]) -> None:
        self.formula, self.arrays = formula, arrays
        self.tokens = [match[1] for match in _TOKEN.finditer(formula.form)]
        if "".join(self.tokens) != formula.form.replace(" ", ""):
            raise NoValueError

    def value(self) -> _Value:
        found = self._product()
        if self.tokens:
            raise NoValueError
        return found

    def _next(self, wanted: str = "") -> str:
        if not self.tokens or (wanted and self.tokens[0] != wanted):
            raise NoValueError
        return self.tokens.pop(0)

    def _product(self) -> _Value:
        if self.tokens[:2] == ["sum", "over"]:
            del self.tokens[:2]
            name = self._next()
            self._next("of")
            return self._sum(name)
        found = self._atom()
        while self.tokens[:1] == ["*"]:
            self._next()
            found = _apply("mul", (found, self._atom()))
        return found

    def _sum(self, name: str) -> _Value:
        """A sum of products, in single precision and any order."""
        factors = [self._atom()]
        while self.tokens[:1] == ["*"]:
            self._next()
            factors.append(self._atom())
        if len(factors) != 2 or any(name not in each.axes for each in factors):
            raise NoValueError
        left, right = factors
        depth = left.exact.shape[left.axes.index(name)]
        if not self.formula.sums_all(name, depth):
            raise NoValueError
        kept = tuple(dict.fromkeys(axis for each in factors for axis in each.axes if axis != name))
        letters = dict(zip((*kept, name), ascii_letters, strict=False))
        spelled = ["".join(letters[axis] for axis in axes) for axes in (left.axes, right.axes, kept)]
        equation = f"{spelled[0]},{spelled[1]}->{spelled[2]}"

        def summed(a: Exact, b: Exact) -> Exact:
            return np.einsum(equation, a, b, optimize=True)

        sizes = summed(np.abs(left.exact) + left.error, np.abs(right.exact) + right.error)
        exact = summed(left.exact, right.exact)
        inherited = sizes - summed(np.abs(left.exact), np.abs(right.exact))
        return _Value(kept, exact, inherited + depth * F32_ROUNDING * sizes, F32_ROUNDING)

    def _atom(self) -> _Value:
        token = self._next()
        if re.match(r"-?\d|-?inf", token):
            number = np.asarray(float(token), np.float64)
            return _Value((), number, np.zeros(()), 0.0)
        if not token.isidentifier():
            raise NoValueError
        if token in _FOLDS and self.tokens[:1] == ["of"]:
            return self._fold(token)
        if self.tokens[:1] != ["("]:
            return self._tensor(token)
        self._next("(")
        parts = [self._product()]
        while self.tokens[:1] == [","]:
            self._next()
            parts.append(self._product())
        self._next(")")
        return _cast(token, parts) if token not in ELEMENT_OPS else _apply(token, parts)

    def _fold(self, what: str) -> _Value:
        """A sum or a maximum along one name."""
        self._next("of")
        value = self._product()
        self._next("over")
        name = self._next()
        at = value.axes.index(name)
        if not self.formula.sums_all(name, value.exact.shape[at]):
            raise NoValueError
        kept = tuple(axis for axis in value.axes if axis != name)
        if what == "maximum":
            return _Value(kept, value.exact.max(at), value.error.max(at), value.unit)
        sizes = (np.abs(value.exact) + value.error).sum(at)
        error = value.error.sum(at) + value.exact.shape[at] * F32_ROUNDING * sizes
        return _Value(kept, value.exact.sum(at), error, F32_ROUNDING)

    def _tensor(self, name: str) -> _Value:
        names = {inner: outer for _, outside in self.formula.kernels for inner, outer in outside.items()}
        outer = names.get(name, "")
        if outer not in self.arrays or outer == self.formula.output:
            raise NoValueError
        array = self.arrays[outer]
        exact = array.astype(np.float64)
        return _Value(self.formula.axes(outer), exact, np.zeros_like(exact), rounding_of(array.dtype))


def _cast(name: str, parts: Sequence[_Value]) -> _Value:
    kind = getattr(dtypes, name, None)
    if not isinstance(kind, DType) or kind.family != "float" or len(parts) != 1:
        raise NoValueError
    (value,) = parts
    unit = rounding_of(kind.numpy)
    rounded = value.exact.astype(kind.numpy).astype(np.float64)
    error = value.error + unit * (np.abs(value.exact) + value.error)
    return _Value(value.axes, np.where(np.isfinite(rounded), value.exact, rounded), error, unit)


def _apply(name: str, parts: Sequence[_Value]) -> _Value:
    """The operation, with the errors of its operands at the corners of their intervals and its own roundings."""
    entry = ELEMENT_OPS[name]
    if entry.arity != len(parts):
        raise NoValueError
    axes = tuple(dict.fromkeys(axis for part in parts for axis in part.axes))
    operands = [part.along(axes) for part in parts]
    exact = np.asarray(entry.meaning(*(value for value, _ in operands)), np.float64)
    unit = max(part.unit for part in parts)
    spread = np.zeros_like(exact)
    if any(part.error.any() for part in parts):
        for signs in product((-1, 1), repeat=len(parts)):
            moved = (value + sign * error for sign, (value, error) in zip(signs, operands, strict=True))
            corner = entry.meaning(*moved)
            spread = np.fmax(spread, np.abs(corner - exact))
    relative = max(_ROUNDINGS_OF_AN_OPERATION * max(unit, F32_ROUNDING / 2), _APPROXIMATE.get(name, 0.0))
    return _Value(axes, exact, spread + relative * np.abs(exact), unit)
