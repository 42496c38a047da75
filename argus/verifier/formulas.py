"""Evaluates the proved content of an output, such as `relu(bf16(sum over k of A * B))`, in float64 with error bounds.

A tensor is an array with an axis for each of its tags, which are functions of its coordinates. Whatever else a formula
contains has no value here, and the output is not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_letters
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core.algebra import TRUE
from argus.core.dtype import DTYPES, DType
from argus.core.elementwise import ELEMENT_OPS
from argus.core.index import Coord, Read, Symbol
from argus.core.ir import Assert, Covers, Kernel, Tag, WrittenOnce, walk
from argus.core.walk import evaluate, mentions, symbols
from argus.verifier.formula_values import COMPARED, NoValueError, Value, aligned, apply, cast_to, rounded, with_holes
from argus.verifier.reference import F32_ROUNDING, Exact, rounding_of, when_stored
from argus.verifier.tagged_arrays import Known, Record, record_of

Array = npt.NDArray[Any]
_TOKEN = re.compile(r"\s*(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|-?inf|[A-Za-z_]\w*|[(),*/+-]|<=|==|<)")
_SPELLED = {"add": "+", "sub": "-", "mul": "*", "div": "/", "max": "maximum", "min": "minimum"}
"""How formulas write operations that they do not write by name."""
_RESULT = re.compile(r"each element of `(\w+)` is (.*?)(?:, rounded on the way: ([\w, ]+))?")


@frozen
class Stated:
    """The formula of an output, and to which types results of operations are rounded on the way.

    An operation is one of elements, a kind of reduction, or a tensor. One that the formula does not show may be any.
    """

    form: str
    roundings: tuple[tuple[str, DType], ...] = ()

    def rounded(self, operation: str, value: Value) -> Value:
        """What an operation of the formula computes, rounded as in the program. Integers stay as they are, unless what
        is rounded is they themselves.
        """
        shown = {match[1] for match in _TOKEN.finditer(self.form)}
        mine = [dtype for name, dtype in self.roundings if name == operation]
        if value.unit:
            mine += [dtype for name, dtype in self.roundings if _SPELLED.get(name, name) not in shown]
        return rounded(value, max((rounding_of(dtype.numpy) for dtype in mine), default=0.0))


def contents(results: Sequence[str]) -> dict[str, Stated]:
    """The formula of each output, from the results of a proof; none for an output with two."""
    found = [match for line in results if (match := _RESULT.fullmatch(line)) is not None]
    names = [match[1] for match in found]
    parts = {match[1]: Stated(match[2], tuple(_roundings(match[3] or ""))) for match in found}
    return {name: stated for name, stated in parts.items() if names.count(name) == 1}


def _roundings(listed: str) -> Iterator[tuple[str, DType]]:
    """Those listed as `exp2 to bf16, sum to e4m3`."""
    types = {str(each): each for each in DTYPES}
    for operation, dtype in (each.rsplit(" to ", 1) for each in listed.split(", ") if each):
        yield "add" if operation == "fma" else operation, types[dtype]  # formulas write `a * b + c`


@frozen(eq=False)
class Formula:
    """The formula of one output.

    kernels: those that tag inputs, the last of which claims the output; for each the caller's name of each parameter.
    sizes: those of the last one.
    """

    output: str
    stated: Stated
    kernels: tuple[tuple[Kernel, Mapping[str, str]], ...]
    sizes: Mapping[Symbol, int]
    _tags: dict[str, Record] = field(init=False)

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
        return exact, when_stored(exact, error, dtype.numpy)

    def _value(self, arrays: Mapping[str, Array]) -> tuple[Exact, Exact]:
        claimed, value, shape = self._claimed(), _Parser(self, arrays).value(), arrays[self.output].shape
        if not set(value.axes) <= {name for name, _ in claimed.names}:
            raise NoValueError
        if claimed.axes:
            exact, error = (np.broadcast_to(each, shape) for each in value.along(claimed.axes))
        else:
            known = self.known(arrays)
            exact, told = claimed.at_tags(value.exact, value.axes, shape, known)
            error = np.where(told, claimed.at_tags(value.error, value.axes, shape, known)[0], np.inf)
            if not told.any() and told.size:
                raise NoValueError
        if value.holes and np.isnan(exact).any():
            raise NoValueError
        return exact, error

    def known(self, arrays: Mapping[str, Array]) -> Known:
        integers = {
            inner: arrays[outer].astype(np.int64)
            for inner, outer in self.kernels[-1][1].items()
            if outer in arrays and arrays[outer].dtype.kind in "iu"
        }
        return Known(self.sizes, integers)

    def _tagged(self) -> Iterator[tuple[str, Record]]:
        """The tags of each tensor; a tensor that is tagged in two ways has no entry."""
        seen: dict[str, list[Record | None]] = {}
        for kernel, outside in self.kernels:
            for stmt in walk(kernel.body):
                if isinstance(stmt, Tag):
                    name = outside.get(stmt.view.buffer.name, "")
                    seen.setdefault(name, []).append(record_of(stmt.names, stmt.view))
        for name, found in seen.items():
            first = found[0]
            if first is not None and all(each is not None and _alike(first, each) for each in found):
                yield name, first

    def tensor(self, name: str, arrays: Mapping[str, Array]) -> Value:
        """A tensor's elements by its tags. Raises NoValueError if it has none, ValueError as `over_tags`."""
        if name not in self._tags and arrays[name].size == 1:
            number = arrays[name].astype(np.float64).reshape(())
            return Value((), number, np.zeros(()), rounding_of(arrays[name].dtype))
        if name not in self._tags:
            raise NoValueError
        record, exact = self._tags[name], arrays[name].astype(np.float64)
        axes, unit = record.axes, rounding_of(arrays[name].dtype)
        if axes:
            return Value(axes, exact, np.zeros_like(exact), unit)
        exact = record.over_tags(exact, self.known(arrays))
        return Value(tuple(name for name, _ in record.names), exact, np.zeros_like(exact), unit, holes=True)

    def _claimed(self) -> Record:
        kernel, outside = self.kernels[-1]
        claims = [s.claim for s in walk(kernel.body) if isinstance(s, Assert)]
        mine = [c for c in claims if isinstance(c, WrittenOnce) and outside.get(c.view.buffer.name) == self.output]
        record = record_of(mine[0].record, mine[0].view, mine[0].where) if len(mine) == 1 else None
        if record is None:
            raise NoValueError
        return record

    def sums_all(self, name: str, extent: int) -> bool:
        """Whether every claim about the sums over a name is that they cover this whole range."""
        claims = [s.claim for s in walk(self.kernels[-1][0].body) if isinstance(s, Assert)]
        mine = [claim for claim in claims if isinstance(claim, Covers) and claim.of.name == name]
        ends = {end for claim in mine for end in ((0, claim.low), (extent, claim.high))}
        known = all(symbols(end) <= self.sizes.keys() and not mentions(end, (Coord, Read)) for _, end in ends)
        whole = known and all(int(np.asarray(evaluate(end, self.sizes))) == wanted for wanted, end in ends)
        return bool(mine) and whole and all(claim.where is TRUE for claim in mine)


class _Parser:
    """Evaluates a formula: names, numbers, `f(x, ...)`, `x + y`, `x - y`, `x * y`, `x / y`, `sum over k of x`,
    `maximum over k of x`, and `where(x < y, x, y)`.
    """

    def __init__(self, formula: Formula, arrays: Mapping[str, Array]) -> None:
        self.formula, self.arrays = formula, arrays
        self.tokens = [match[1] for match in _TOKEN.finditer(formula.stated.form)]
        if "".join(self.tokens) != formula.stated.form.replace(" ", ""):
            raise NoValueError

    def value(self) -> Value:
        found = self._sum()
        if self.tokens:
            raise NoValueError
        return found

    def _next(self, wanted: str = "") -> str:
        if not self.tokens or (wanted and self.tokens[0] != wanted):
            raise NoValueError
        return self.tokens.pop(0)

    def _sum(self) -> Value:
        """Terms that are added and subtracted."""
        if self.tokens[:1] in (["sum"], ["maximum"]) and self.tokens[1:2] == ["over"]:
            kind = self._next()
            return self.formula.stated.rounded("max" if kind == "maximum" else kind, self._fold(kind))
        return self._terms(self._product(self._factors()))

    def _terms(self, first: Value) -> Value:
        found = first
        while self.tokens[:1] in (["+"], ["-"]):
            name = "add" if self._next() == "+" else "sub"
            found = self._apply(name, (found, self._product(self._factors())))
        return found

    def _factors(self) -> list[tuple[str, Value]]:
        found = [("mul", self._atom())]
        while self.tokens[:1] in (["*"], ["/"]):
            found.append(("mul" if self._next() == "*" else "div", self._atom()))
        return found

    def _apply(self, name: str, parts: Sequence[Value]) -> Value:
        return self.formula.stated.rounded(name, apply(name, parts))

    def _product(self, factors: Sequence[tuple[str, Value]]) -> Value:
        found = factors[0][1]
        for name, each in factors[1:]:
            found = self._apply(name, (found, each))
        return found

    def _fold(self, what: str) -> Value:
        """A sum or a maximum over names, in single precision and any order."""
        self._next("over")
        names = [self._next()]
        while self.tokens[:1] == [","]:
            self._next()
            names.append(self._next())
        self._next("of")
        if self.tokens[:1] in (["sum"], ["maximum"]) and self.tokens[1:2] == ["over"]:
            return self._over(what, names, self._sum())
        factors = self._factors()
        plain = what == "sum" and len(names) == 1 and self.tokens[:1] not in (["+"], ["-"])
        if plain and [name for name, _ in factors] == ["mul", "mul"]:
            (_, one), (_, two) = factors
            if names[0] in one.axes and names[0] in two.axes:
                return self._sum_of_products(names[0], one, two)
        return self._over(what, names, self._terms(self._product(factors)))

    def _sum_of_products(self, name: str, one: Value, two: Value) -> Value:
        _, (left, right) = aligned(one, two)
        depth = left.exact.shape[left.axes.index(name)]
        if not self.formula.sums_all(name, depth):
            raise NoValueError
        kept = tuple(dict.fromkeys(axis for each in (one, two) for axis in each.axes if axis != name))
        letters = dict(zip((*kept, name), ascii_letters, strict=False))
        spelled = ["".join(letters[axis] for axis in axes) for axes in (left.axes, right.axes, kept)]
        equation = f"{spelled[0]},{spelled[1]}->{spelled[2]}"

        def summed(a: Exact, b: Exact) -> Exact:
            return np.einsum(equation, a, b, optimize=True)

        sizes = summed(np.abs(left.exact) + left.error, np.abs(right.exact) + right.error)
        exact = summed(left.exact, right.exact)
        inherited = sizes - summed(np.abs(left.exact), np.abs(right.exact))
        return Value(kept, exact, inherited + depth * F32_ROUNDING * sizes, F32_ROUNDING, left.holes or right.holes)

    def _over(self, what: str, names: Sequence[str], value: Value) -> Value:
        """A sum or a maximum of what has one axis for each name."""
        for name in names:
            value = self._over_one(what, name, value)
        return value

    def _over_one(self, what: str, name: str, value: Value) -> Value:
        if name not in value.axes:
            raise NoValueError
        at = value.axes.index(name)
        if not self.formula.sums_all(name, value.exact.shape[at]):
            raise NoValueError
        kept = tuple(axis for axis in value.axes if axis != name)
        if what == "maximum":
            return Value(kept, value.exact.max(at), value.error.max(at), value.unit, value.holes)
        sizes = (np.abs(value.exact) + value.error).sum(at)
        error = value.error.sum(at) + value.exact.shape[at] * F32_ROUNDING * sizes
        return Value(kept, value.exact.sum(at), error, F32_ROUNDING, value.holes)

    def _atom(self) -> Value:
        word = self._next()
        if re.match(r"-?\d|-?inf", word):
            number = np.asarray(float(word), np.float64)
            return Value((), number, np.zeros(()), 0.0)
        if word == "(":
            found = self._sum()
            self._next(")")
            return found
        if not word.isidentifier():
            raise NoValueError
        if self.tokens[:1] != ["("]:
            return self.formula.stated.rounded(word, self._tensor(word))
        self._next("(")
        if word == "where":
            return self._where()
        parts = [self._sum()]
        while self.tokens[:1] == [","]:
            self._next()
            parts.append(self._sum())
        self._next(")")
        return cast_to(word, parts) if word not in ELEMENT_OPS else self._apply(word, parts)

    def _where(self) -> Value:
        """One of two values; where the test may be either, with the distance of both as its error."""
        test = self._test()
        parts: list[Value] = []
        for _ in range(2):
            self._next(",")
            parts.append(self._sum())
        self._next(")")
        axes, held = aligned(test, *parts)
        (true, unsure), (then, one), (other, two) = (part.along(axes) for part in held)
        exact, error = np.where(true != 0, then, other), np.where(true != 0, one, two)
        either = np.abs(then - other) + one + two
        error = np.where(unsure != 0, either, error)
        return with_holes(Value(axes, exact, error, max(part.unit for part in parts)), held)

    def _test(self) -> Value:
        """1 where a test holds; its error is 1 where rounding may change it."""
        left = self._sum()
        compared = COMPARED.get(self._next())
        if compared is None:
            raise NoValueError
        right = self._sum()
        axes, held = aligned(left, right)
        (a, one), (b, two) = (part.along(axes) for part in held)
        unsure = (np.abs(a - b) <= one + two) & (one + two > 0)
        return with_holes(Value(axes, compared(a, b).astype(np.float64), unsure.astype(np.float64), 0.0), held)

    def _tensor(self, name: str) -> Value:
        names = {inner: outer for _, outside in self.formula.kernels for inner, outer in outside.items()}
        sizes = {symbol.name: value for symbol, value in self.formula.sizes.items()}
        if name in sizes and name not in names:
            return Value((), np.asarray(sizes[name], np.float64), np.zeros(()), 0.0)
        outer = names.get(name, "")
        if outer not in self.arrays or outer == self.formula.output:
            raise NoValueError
        return self.formula.tensor(outer, self.arrays)


def _alike(one: Record, two: Record) -> bool:
    """Whether two give one tensor the same tags: two tags of one view, or both of the tensor's own coordinates."""
    same_view = (one.view.shape, one.view.at, one.view.where) == (two.view.shape, two.view.at, two.view.where)
    return (same_view and one.names == two.names) or bool(one.axes and one.axes == two.axes)
