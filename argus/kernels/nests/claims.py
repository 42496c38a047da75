"""What a nest claims of its output: the formula of each element, made from the nest's data alone.

Nothing here is shared with the templates: a template that computes something else is not proved.
"""

# Without `from __future__ import annotations`: kernels are traced with this file.

import operator
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, assert_never

import argus.language as lang
from argus.language import Tensor, assert_equals, elements
from argus.nests.affine import computed
from argus.nests.integers import TYPES
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
    Nest,
    Read,
    Reduce,
    Select,
    Test,
)

Numbers = Mapping[str, Any]
"""The integers of the kernel by name: sizes and coordinates."""


def _quotient(x: Any, y: Any) -> Any:  # noqa: ANN401 reason: values and numbers
    return x / y


def _power(x: Any, y: Any) -> Any:  # noqa: ANN401 reason: values and numbers
    return x**y


_FUNCTIONS: Mapping[str, Any] = {
    "neg": operator.neg,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _quotient,
    "pow": _power,
    "abs": operator.abs,
    "max": lang.maximum,
    "min": lang.minimum,
}
"""Element operations that formulas spell otherwise than by the language's function of the same name."""
_REDUCTIONS: Mapping[str, Any] = {
    "add": lang.total,
    "mul": lang.product,
    "max": lang.greatest,
    "min": lang.least,
    "argmax": lang.argmax,
    "argmin": lang.argmin,
}


def claim(
    nest: Nest, tensors: Mapping[str, Tensor], sizes: Numbers, multiply: Callable[[Any, Any], Any] | None = None
) -> None:
    """Claim that each element of the nest's output is its body. Raises ArgusError (E106) for what no formula says.

    multiply: what is claimed of a product that is summed, if that is not the product of real numbers.
    """

    def formula(*at: Any) -> Any:  # noqa: ANN401 reason: integers of the kernel, and a value
        places = {axis.name: place for axis, place in zip(nest.domain, at, strict=True)}
        return _Formula(tensors, {**sizes, **places}, multiply).of(nest.body)

    assert_equals(tensors[nest.output], _of_arguments(formula, [axis.name for axis in nest.domain]))


def _of_arguments(function: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    """The function as one of arguments of these names, which a formula has for its coordinates."""

    def named(*at: Any) -> Any:  # noqa: ANN401 reason: integers of the kernel, and a value
        return function(*at)

    named.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in names])  # type: ignore[attr-defined]
    return named


_where: Any = lang.where


class _Formula:
    """The value of expressions at some coordinates; shared ones are made once."""

    def __init__(
        self, tensors: Mapping[str, Tensor], numbers: Numbers, multiply: Callable[[Any, Any], Any] | None = None
    ) -> None:
        self._tensors = tensors
        self._multiply = multiply
        self._numbers = numbers
        self._known: dict[int, Any] = {}

    def of(self, expr: Expr) -> Any:  # noqa: ANN401 reason: a value of a formula, or a number
        if id(expr) not in self._known:
            self._known[id(expr)] = self._made(expr)
        return self._known[id(expr)]

    def _made(self, expr: Expr) -> Any:  # noqa: ANN401 reason: as above
        match expr:
            case Read():
                return self._element(expr)
            case Constant(value=value):
                return value
            case Coordinate(index=index):
                return computed(index, self._numbers)
            case Apply(op=op, args=args):
                found = _FUNCTIONS.get(op) or getattr(lang, op)
                return found(*map(self.of, args))
            case Select(test=test, then=then, other=other):
                return _where(self._test(test), self.of(then), self.of(other))
            case Convert(dtype=dtype, arg=arg) if dtype in TYPES:
                return lang.wrapped(self.of(arg), TYPES[dtype])
            case Convert(arg=arg):
                return self.of(arg)  # a claim is over the real numbers
            case Reduce():
                return self._reduced(expr)
            case _:
                assert_never(expr)

    def _element(self, read: Read) -> Any:  # noqa: ANN401 reason: as above
        tensor = self._tensors[read.tensor]
        at = [computed(each, self._numbers) for each in read.index]
        found = elements(tensor)(*at)
        if read.outside is None:
            return found
        inside: Any = True
        for place, extent in zip(at, tensor.shape, strict=True):
            inside = inside & (place >= 0) & (place < extent)
        return _where(inside, found, read.outside)

    def _reduced(self, reduce: Reduce) -> Any:  # noqa: ANN401 reason: as above
        numbers = dict(self._numbers)
        over = [computed(axis.extent, numbers) for axis in reduce.axes]
        names = [axis.name for axis in reduce.axes]

        def body(*at: Any) -> Any:  # noqa: ANN401 reason: as above
            inner = _Formula(self._tensors, {**numbers, **dict(zip(names, at, strict=True))}, self._multiply)
            match reduce:
                case Reduce(op="add", body=Apply(op="mul", args=args)) if self._multiply is not None:
                    return self._multiply(*map(inner.of, args))
                case _:
                    return inner.of(reduce.body)

        ranges = over[0] if len(over) == 1 else tuple(over)
        return _REDUCTIONS[reduce.op](_of_arguments(body, names), over=ranges)

    def _test(self, test: Test) -> Any:  # noqa: ANN401 reason: as above
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
