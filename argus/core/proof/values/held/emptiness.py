"""Where maxima are numbers, and what is 0 where one is -inf because nothing is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from attrs import frozen

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Cmp, Cond, Index, Sym, Symbol
from argus.core.proof.values.held.terms import replaced
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Infinity,
    Number,
    Reduce,
    Whole,
    expr,
    infinity,
)
from argus.core.values.numbers import is_number, number_where, unscaled
from argus.core.values.rewriting import nodes
from argus.core.walk import substitute

_NOTHING = infinity(-1)


class Facts(Protocol):
    """What is known where an expression is used."""

    def holds(self, goal: Cond, /) -> bool:
        """Whether the condition provably holds here."""
        ...

    def within(self, *more: Cond) -> Facts:
        """What is known where these conditions hold too."""
        ...


# -- numbers -------------------------------------------------------------------------------------------


def has_element(known: Facts, of: Expr) -> bool:
    """Whether the value is a number here."""
    ways = number_where(of)
    return bool(ways) and (algebra.TRUE in ways or known.holds(algebra.any_of(ways)))


# -- nothing -------------------------------------------------------------------------------------------


@frozen(eq=False)
class Leaf:
    """A value that is -inf for all numbers in these ranges."""

    ranges: tuple[Reduce, ...]
    value: Expr


def leaves(of: Expr, ranges: tuple[Reduce, ...] = ()) -> Iterator[Leaf]:
    """What is -inf where a maximum is."""
    match of:
        case Fn(name="max", args=(a, b)):
            yield from leaves(a, ranges)
            yield from leaves(b, ranges)
        case Reduce(op="max", where=algebra.TRUE, body=body):
            yield from leaves(body, (*ranges, of))
        case Infinity():
            pass
        case _:
            yield Leaf(ranges, of)


@frozen(eq=False)
class Nothing:
    """What is 0 where these leaves are -inf."""

    known: Facts
    leaves: Sequence[Leaf]

    def vanishes(self, of: Expr) -> bool:
        """Whether the value is 0."""
        match of:
            case Fn(name="mul", args=(a, b)):
                return (self.vanishes(a) and is_number(b)) or (self.vanishes(b) and is_number(a))
            case Fn(name="div", args=(a, Number())) | Fn(name="neg", args=(a,)):
                return self.vanishes(a)
            case Fn(name="add" | "sub", args=args):
                return all(map(self.vanishes, args))
            case Choose(test=Compare(), then=then, other=other):
                return self.vanishes(then) and self.vanishes(other)
            case Choose(test=test, then=then, other=other):
                assert not isinstance(test, Compare)
                return self._where(test, then) and self._where(algebra.negate(test), other)
            case Reduce(op="sum"):
                within = self._within(of)
                return within.vanishes(of.body) or within.is_contradicted(of.body)
            case Fn(name="exp" | "exp2", args=(a,)):
                return self.falls(a)
            case _:
                return of is expr(0)

    def is_contradicted(self, of: Expr) -> bool:
        """Whether a part of the value is one of the leaves, and a number: there is no such place."""
        return any(
            self._is_instance(part, leaf) and has_element(self.known, part)
            for part in nodes(of)
            for leaf in self.leaves
            if isinstance(part, type(leaf.value))
        )

    def falls(self, of: Expr) -> bool:
        """Whether the value is -inf."""
        if of is _NOTHING or any(self._is_instance(of, each) for each in self.leaves):
            return True
        match of:
            case Fn(name="add", args=(a, b)):
                return (self.falls(a) and number_where(b) is not None) or (
                    self.falls(b) and number_where(a) is not None
                )
            case Fn(name="sub", args=(a, b)):
                return self.falls(a) and is_number(b)
            case Fn(name="mul" | "div") if (scaled := unscaled(of)) is not None:
                return self.falls(scaled)
            case Fn(name="max", args=(a, b)) | Choose(then=a, other=b):
                return self.falls(a) and self.falls(b)
            case _:
                return False

    def _where(self, test: Cond, of: Expr) -> bool:
        return self.known.holds(algebra.negate(test)) or Nothing(self.known.within(test), self.leaves).vanishes(of)

    def _within(self, of: Reduce) -> Nothing:
        here = algebra.sym(of.variable)
        known = self.known.within(algebra.le(of.low, here), algebra.lt(here, of.high), of.where)
        return Nothing(known, self.leaves)

    def _is_instance(self, of: Expr, leaf: Leaf) -> bool:
        """Whether the value is the leaf at numbers of its ranges."""
        names = {each.variable: Symbol(f"{each.variable.name} of a leaf", "fresh", 0) for each in leaf.ranges}
        pattern = replaced(leaf.value, {variable: algebra.sym(name) for variable, name in names.items()})
        return any(self._within_ranges(leaf, names, at) for at in matched(pattern, of, list(names.values())))

    def _within_ranges(self, leaf: Leaf, names: Mapping[Symbol, Symbol], at: Numbers) -> bool:
        here = {variable: at[name] for variable, name in names.items()}
        return all(
            self.known.holds(algebra.le(substitute(each.low, here), here[each.variable]))
            and self.known.holds(algebra.lt(here[each.variable], substitute(each.high, here)))
            for each in leaf.ranges
        )


Numbers = Mapping[Symbol, Index]


def matched(pattern: Expr, of: Expr, variables: Sequence[Symbol]) -> Iterator[Numbers]:
    """Numbers of the variables for which the pattern is the value."""
    places = list(_places(pattern, of))
    for whole in (True, False):
        found: dict[Symbol, Index] = {}
        while len(found) < len(variables):
            solved = next(filter(None, (_solved(*each, found, variables, whole=whole) for each in places)), None)
            if solved is None:
                break
            found |= solved
        if len(found) == len(variables) and replaced(pattern, found) is of:
            yield found


def _solved(pattern: Index, of: Index, found: Numbers, variables: Sequence[Symbol], *, whole: bool) -> Numbers | None:
    """The variables of a place that are not known: one, or n a + b with a number a of n's, or the quotient."""
    difference = algebra.sub(of, substitute(pattern, found))
    terms, _ = linear_terms(difference)
    own = [(a, f) for a, f in terms if isinstance(a, Sym) and a.symbol in variables and a.symbol not in found]
    if not 1 <= len(own) <= 2:
        return None
    (last, factor), *more = sorted(own, key=lambda each: abs(each[1]))
    rest = algebra.sub(algebra.add(*(algebra.mul(a, f) for a, f in own)), difference)
    if factor < 0:
        rest = algebra.neg(rest)
    assert isinstance(last, Sym)
    if not more:
        value = _quotient(rest, abs(factor))
        return {last.symbol: value} if algebra.mul(value, abs(factor)) is rest else None
    if abs(factor) != 1:
        return None
    ((first, step),) = more
    if step * factor < 0:
        return None
    step = abs(step)
    many = _quotient(rest, step) if whole else algebra.floordiv(rest, step)
    return {first.symbol: many, last.symbol: algebra.sub(rest, algebra.mul(many, step))}


def _quotient(of: Index, number: int) -> Index:
    """The sum of the terms' quotients, rounded down."""
    parts, constant = linear_terms(of)
    return algebra.linear([(a, f // number) for a, f in parts if f // number], constant // number)


def _places(pattern: Expr, of: Expr) -> Iterator[tuple[Index, Index]]:
    """The integers at the same places of two expressions."""
    match pattern, of:
        case Whole(index=a), Whole(index=b):
            yield a, b
        case Element(tensor=one, at=a), Element(tensor=other, at=b) if one == other:
            yield from zip(a, b, strict=True)
        case Fn(name=one, args=a), Fn(name=other, args=b) if one == other:
            for x, y in zip(a, b, strict=True):
                yield from _places(x, y)
        case Choose(test=one, then=a, other=b), Choose(test=other, then=c, other=d):
            if isinstance(one, Cmp) and isinstance(other, Cmp):
                yield algebra.sub(one.right, one.left), algebra.sub(other.right, other.left)
            yield from _places(a, c)
            yield from _places(b, d)
        case Reduce(body=a), Reduce(body=b):
            yield from _places(a, b)
        case _:
            pass
