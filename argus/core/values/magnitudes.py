"""How large a sum of products of integers can be, over all values of the elements of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.values.expr import Choose, Compare, Element, Expr, Fn, Number, Reduce
from argus.core.values.places_below import Range, count_below
from argus.core.walk import symbols

_ZERO = algebra.const(0)


@frozen
class Magnitude:
    """The greatest size of a value.

    sign: 1 or -1 if the value is `most`, or `-most`, where `tests` and `needs` hold and every element is the least
    number of its type; 0 if that is not known. Where a test fails, a value with a sign is 0.
    """

    most: Index
    sign: int = 0
    tests: tuple[Cond, ...] = ()
    needs: tuple[Cond, ...] = ()


@frozen
class _Part:
    """The sum of a body over nested ranges, the outermost first."""

    ranges: tuple[Range, ...]
    body: Magnitude

    @property
    def variables(self) -> frozenset[Symbol]:
        return frozenset(each.variable for each in self.ranges)

    def splits(self) -> tuple[tuple[Cond, ...], tuple[Cond, ...]]:
        """The tests of the body that do not depend on the variables of its ranges, and those that do."""
        free = [each for each in self.body.tests if self.variables.isdisjoint(symbols(each))]
        return tuple(free), tuple(each for each in self.body.tests if each not in free)


def magnitude(of: Expr, bits: Mapping[str, int], promised: Mapping[str, int] | None = None) -> Magnitude | None:
    """The greatest size of a sum of signed integers in two's complement; None where none is known.

    bits: the widths of the elements of tensors of integers. promised: the greatest sizes of elements, of tensors of
    which a contract says it.
    """
    parts = list(_parts(of, (), {name: _of_type(each) for name, each in bits.items()} | _of_contracts(promised or {})))
    known = [each for each in parts if each is not None]
    if len(known) < len(parts):
        return None
    return _counted_together(known) or _counted_apart(known)


Sizes = Mapping[str, Magnitude]
"""Of the elements of tensors."""


def _of_type(bits: int) -> Magnitude:
    return Magnitude(algebra.const(1 << (bits - 1)), -1)


def _of_contracts(promised: Mapping[str, int]) -> dict[str, Magnitude]:
    return {name: Magnitude(algebra.const(most)) for name, most in promised.items()}


def _parts(of: Expr, ranges: tuple[Range, ...], sizes: Sizes) -> Iterator[_Part | None]:
    match of:
        case Fn(name="add", args=args):
            for each in args:
                yield from _parts(each, ranges, sizes)
        case Reduce(op="sum", variable=variable, low=low, high=high, body=body) if of.where is algebra.TRUE:
            yield from _parts(body, (*ranges, Range(variable, low, high)), sizes)
        case _:
            body = _size(of, sizes)
            yield None if body is None else _Part(ranges, body)


def _size(of: Expr, sizes: Sizes) -> Magnitude | None:
    """The size of what is no sum."""
    match of:
        case Number(value=value) if value.denominator == 1:
            return Magnitude(algebra.const(abs(int(value))))
        case Element(tensor=tensor):
            return sizes.get(tensor)
        case Fn(name="mul", args=(one, two)):
            a, b = _size(one, sizes), _size(two, sizes)
            if a is None or b is None:
                return None
            tests = tuple(dict.fromkeys((*a.tests, *b.tests)))
            return Magnitude(algebra.mul(a.most, b.most), a.sign * b.sign, tests)
        case Choose(test=test, then=then, other=other) if not isinstance(test, Compare):
            return _chosen(test, _size(then, sizes), _size(other, sizes))
        case _:
            return None


def _chosen(test: Cond, then: Magnitude | None, other: Magnitude | None) -> Magnitude | None:
    if then is None or other is None:
        return None
    for taken, left, cond in ((then, other, test), (other, then, algebra.negate(test))):
        if left.most is _ZERO and taken.sign:
            return evolve(taken, tests=tuple(dict.fromkeys((*taken.tests, cond))))
    return Magnitude(algebra.maximum(then.most, other.most))


def _counted_apart(parts: Sequence[_Part]) -> Magnitude | None:
    """Each part by the number of values of its variables."""
    total, alike = _ZERO, {(each.body.sign, each.body.tests) for each in parts}
    for each in parts:
        count = algebra.const(1)
        for of in each.ranges:
            if not each.variables.isdisjoint(symbols(of.low, of.high)):
                return None
            count = algebra.mul(count, algebra.maximum(0, algebra.sub(of.high, of.low)))
        total = algebra.add(total, algebra.mul(count, each.body.most))
    if len(alike) > 1 or any(each.splits()[1] for each in parts):
        return Magnitude(total)
    ((sign, tests),) = alike
    return Magnitude(total, sign, tests)


def _counted_together(parts: Sequence[_Part]) -> Magnitude | None:
    """All parts by the different places below one bound that their tests leave."""
    sizes = {(each.body.most, each.body.sign, each.splits()[0]) for each in parts}
    if len(sizes) > 1 or not parts:
        return None
    found = count_below([(each.ranges, each.splits()[1]) for each in parts])
    if found is None:
        return None
    ((most, sign, tests),) = sizes
    needs = () if found.needs is None else found.needs
    return Magnitude(algebra.mul(found.count, most), 0 if found.needs is None else sign, tests, needs)
