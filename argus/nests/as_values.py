"""What nests say as values over the reals, and whether two expressions of nests are equal for all elements."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import count, product, zip_longest
from math import isinf, isnan
from typing import assert_never

from attrs import field, frozen

from argus.core import algebra
from argus.core.index import Cond, Const, Index, Symbol
from argus.core.values.equality import Equal, by_normal_forms
from argus.core.values.expr import Expr as Formula
from argus.core.values.expr import ReduceOp, choose, compare, element, expr, fn, infinity, reduce_
from argus.core.walk import substitute
from argus.nests.nest import (
    Apply,
    Axis,
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
    TensorType,
    Test,
)
from argus.nests.rewrite import reductions

_REDUCTIONS: Mapping[str, ReduceOp] = {"add": "sum", "mul": "product", "max": "max", "min": "min"}
_FLOATS = frozenset(("f32", "bf16", "f16"))
_FEW = 8
"""Places of an axis that are spelled out, at most."""


def are_equal(
    one: Expr, other: Expr, nests: Mapping[str, Nest], types: Mapping[str, TensorType], domain: tuple[Axis, ...]
) -> bool:
    """Whether both are equal for all elements of tensors, at each place of the domain.

    nests: those whose outputs are read as what they compute. types: of all tensors.
    """
    if any(each.op not in _REDUCTIONS for each in reductions(one, other, *(nest.body for nest in nests.values()))):
        return False
    a, b = (_Formula(nests, types, {}).of(each) for each in (one, other))
    facts = tuple(cond for axis in domain for cond in (algebra.le(0, axis.index), algebra.lt(axis.index, axis.extent)))
    return isinstance(by_normal_forms(a, b, facts), Equal)


def _number(value: float) -> Formula:
    if isnan(value):
        return fn("nan")
    return infinity(1 if value > 0 else -1) if isinf(value) else expr(Fraction(value))


@frozen
class _Formula:
    """places: of the axes of sums around."""

    nests: Mapping[str, Nest]
    types: Mapping[str, TensorType]
    places: Mapping[Symbol, Index]
    numbers: count[int] = field(factory=count)

    def of(self, of: Expr) -> Formula:
        match of:
            case Read():
                return self._element(of)
            case Constant(value=value):
                return _number(value)
            case Coordinate(index=index):
                return expr(self._index(index))
            case Apply(op=op, args=args):
                return fn(op, *map(self.of, args))
            case Select(test=test, then=then, other=other):
                return self._chosen(test, self.of(then), self.of(other))
            case Convert(dtype=dtype, arg=arg):  # as in claims, floats are not rounded
                return self.of(arg) if dtype in _FLOATS else fn(f"to {dtype}", self.of(arg))
            case Reduce():
                return self._reduced(of)
            case _:
                assert_never(of)

    def _reduced(self, of: Reduce) -> Formula:
        """Over few places, as in a window, spelled out."""
        few = [axis for axis in of.axes if isinstance(axis.extent, Const) and 0 < axis.extent.value <= _FEW]
        many = [axis for axis in of.axes if axis not in few]
        own = {axis.symbol: Symbol(f"{axis.name}_{next(self.numbers)}", "fresh") for axis in many}
        around = {**self.places, **{symbol: algebra.sym(new) for symbol, new in own.items()}}
        counts = [range(axis.extent.value) for axis in few if isinstance(axis.extent, Const)]
        terms: list[Formula] = []
        for at in product(*counts):
            here = {axis.symbol: algebra.const(place) for axis, place in zip(few, at, strict=True)}
            terms.append(self._at({**around, **here}).of(of.body))
        while len(terms) > 1:
            pairs = zip_longest(terms[::2], terms[1::2])
            terms = [one if other is None else fn(of.op, one, other) for one, other in pairs]
        made = terms[0]
        for axis in reversed(many):
            made = reduce_(_REDUCTIONS[of.op], own[axis.symbol], 0, self._index(axis.extent), made)
        return made

    def _at(self, places: Mapping[Symbol, Index]) -> _Formula:
        return _Formula(self.nests, self.types, places, self.numbers)

    def _index(self, index: Index) -> Index:
        return substitute(index, self.places)

    def _element(self, read: Read) -> Formula:
        at = tuple(map(self._index, read.index))
        nest = self.nests.get(read.tensor)
        if nest is None:
            found: Formula = element(read.tensor, *at)
        else:
            own = {axis.symbol: place for axis, place in zip(nest.domain, at, strict=True)}
            found = self._at(own).of(nest.body)
        if read.outside is None:
            return found
        shape = self.types[read.tensor].shape
        ends = (
            c for place, size in zip(at, shape, strict=True) for c in (algebra.le(0, place), algebra.lt(place, size))
        )
        return choose(algebra.all_of(ends), found, self.of(Constant(read.outside)))

    def _chosen(self, test: Test, then: Formula, other: Formula) -> Formula:
        match test:
            case Compare(op=op, left=left, right=right):
                return choose(compare(op, self.of(left), self.of(right)), then, other)
            case Inside(condition=condition):
                return choose(self._cond(condition), then, other)
            case Both(tests=tests):
                for each in tests:
                    then = self._chosen(each, then, other)
                return then
            case Either(tests=tests):
                for each in tests:
                    other = self._chosen(each, then, other)
                return other
            case Negated(test=negated):
                return self._chosen(negated, other, then)
            case _:
                assert_never(test)

    def _cond(self, condition: Cond) -> Cond:
        return substitute(condition, self.places)
