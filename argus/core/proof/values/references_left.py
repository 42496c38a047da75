"""Whether a value depends on the references of its sums: exp(x - m) over the sum of exp(x - m) does not, the sum does.

Tags say neither that a reference is left nor in which units it is added again: log(sum of exp2(x - m)) + m is wrong by
a factor ln(2). The analysis computes how a value changes if a reference grows: something is added to it, or it is
multiplied by a power.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose, log
from typing import Literal

from attrs import frozen

from argus.core.index import Symbol
from argus.core.proof.dataflow.affine import coordinate_axes
from argus.core.proof.values.held.facts import Known
from argus.core.proof.values.in_cases import in_each_case
from argus.core.proof.values.padding import number
from argus.core.proof.values.summed_terms import Terms
from argus.core.values.expr import Choose, Compare, Expr, Fn, Infinity, Reduce, expr, fn
from argus.core.values.rewriting import bound_variables, nodes, own_integers
from argus.core.walk import symbols

_ROUNDED = 2**-22
"""Relative error of a literal in place of ln(2) or log2(e)."""
_HOMOGENEOUS: Mapping[str, float] = {"abs": 1, "relu": 1, "sqrt": 0.5, "rsqrt": -0.5, "reciprocal": -1}


def depends_on_reference(held: Expr, known: Known | None = None) -> bool:
    """Whether the value may depend on an extremum to which terms of its sums are relative.

    known: what holds where it is used. With it, extrema are compared in each case of sizes and blocks; also those of
    a case in which no sum is left, where a weight that is not divided would be one.
    """
    if not any(map(_is_relative, nodes(held))):
        return False
    return not (_is_constant(held) if known is None else in_each_case(_is_constant, held, known))


def _is_constant(held: Expr) -> bool:
    """Whether the value stays the same if its extrema change."""
    return any(_Following(scaled=scaled).is_constant(held) for scaled in (False, True))


def _is_relative(of: Expr) -> bool:
    """Whether it is a sum of terms that are computed from an extremum of numbers that it is not over."""
    if not isinstance(of, Reduce) or of.op != "sum":
        return False
    return any(is_extremum(each) and of.variable not in _depends(each) for each in nodes(of.body))


def is_extremum(of: Expr) -> bool:
    """Whether the value is a maximum or minimum over a range, or one of such and of other values."""
    match of:
        case Fn(name="max" | "min", args=args):
            return any(map(is_extremum, args))
        case Reduce(op=op):
            return op in ("max", "min")
        case _:
            return False


@frozen
class _Reference:
    """An extremum, the coordinates and variables on which it depends, and its factors."""

    of: Expr
    depends: frozenset[Symbol | int]
    times: tuple[Expr, ...] = ()


def _depends(of: Expr) -> frozenset[Symbol | int]:
    """The axes of coordinates, and the variables of reductions, on which a value depends."""
    own = [own_integers(each) for each in nodes(of)]
    bound = bound_variables(of)
    variables = {s for parts in own for s in symbols(*parts[0], *parts[1]) if s.kind == "fresh" and s not in bound}
    return frozenset((*variables, *coordinate_axes(*(node for parts in own for each in parts for node in each))))


Amounts = Mapping[_Reference, float]


@frozen
class _Change:
    """What becomes of a value where references grow by t: the amounts times t are added, or their power multiplied.

    A number that is 0 is multiplied by any power, and to one that is infinite anything is added.
    """

    kind: Literal["plus", "times", "zero", "infinite"]
    by: Amounts


_SAME, _ZERO, _INFINITE = _Change("plus", {}), _Change("zero", {}), _Change("infinite", {})


def _sum(one: Amounts, two: Amounts, sign: float = 1) -> Amounts:
    """The amounts together, without those that cancel."""
    found = {each: one.get(each, 0.0) + sign * two.get(each, 0.0) for each in {**one, **two}}
    return {
        each: amount
        for each, amount in found.items()
        if not isclose(one.get(each, 0.0), -sign * two.get(each, 0.0), rel_tol=_ROUNDED)
    }


def _change(kind: Literal["plus", "times"], by: Amounts) -> _Change:
    return _Change(kind, by) if by else _SAME


def _either(one: _Change | None, two: _Change | None) -> _Change | None:
    """The change of a value that is one of two; None if they differ."""
    if one is None or two is None:
        return None
    if {one.kind, two.kind} == {"zero", "infinite"}:
        return _SAME
    for special, other in ((one, two), (two, one)):
        if special.kind == "zero" and (other.kind == "times" or not other.by):
            return other
        if special.kind == "infinite" and (other.kind == "plus" or not other.by):
            return other
    return one if one.kind == two.kind and not _sum(one.by, two.by, -1) else None


def _scaled(of: _Change, factor: float) -> _Change:
    return _Change(of.kind, {each: amount * factor for each, amount in of.by.items()}) if factor else _ZERO


class _Following:
    """One reading of a value. scaled: whether references are multiplied, as those of a quotient, else added to."""

    def __init__(self, *, scaled: bool) -> None:
        self._scaled = scaled
        self._terms = Terms()
        self._done: dict[Expr, _Change | None] = {}

    def is_constant(self, held: Expr) -> bool:
        found = self.of(held)
        return found is not None and not found.by

    def of(self, root: Expr) -> _Change | None:
        """What becomes of the value; None where that is not known."""
        if root not in self._done:
            self._done[root] = self._reference(root) if is_extremum(root) else self._of(root)
        return self._done[root]

    def _reference(self, root: Expr) -> _Change:
        own = _Reference(root, _depends(root))
        return _change("times" if self._scaled else "plus", {own: 1.0})

    def _of(self, root: Expr) -> _Change | None:
        match root:
            case Fn(name=name, args=args):
                return self._function(name, args, [self.of(each) for each in args])
            case Choose(test=Compare(left=left, right=right), then=then, other=other):
                if (guarded := self._terms.unguarded(root)) is not root:
                    return self.of(guarded)
                tested = _either(self.of(left), self.of(right))
                if tested is not None and number(then) is not None and {left, right} == {other, expr(0)}:
                    return tested  # a divisor, or another number where it is 0, and so is what it divides
                return None if tested is None else _either(self.of(then), self.of(other))
            case Choose(then=then, other=other):
                return _either(self.of(then), self.of(other))
            case Reduce(op=op, variable=variable, body=body):
                return self._reduced(op, variable, self.of(body))
            case Infinity():
                return _INFINITE
            case _:
                return _ZERO if number(root) == 0 else _SAME

    def _reduced(self, op: str, variable: Symbol, body: _Change | None) -> _Change | None:
        if body is None or not body.by:
            return body
        kept = all(variable not in each.depends.union(*map(_depends, each.times)) for each in body.by)
        return body if op == "sum" and body.kind == "times" and kept else None

    def _function(self, name: str, args: tuple[Expr, ...], changes: list[_Change | None]) -> _Change | None:
        known = [each for each in changes if each is not None]
        if len(known) < len(changes):
            return None
        match name, known:
            case ("add" | "sub", [one, two]):
                return self._added(one, two, -1 if name == "sub" else 1)
            case ("mul" | "div", [_, _]):
                return self._multiplied(args, known, -1 if name == "div" else 1)
            case ("neg", [one]):
                return _scaled(one, -1) if one.kind == "plus" else one
            case ("exp" | "exp2", [one]):
                return self._power(one, log(2) if name == "exp2" else 1)
            case ("log" | "log2", [one]):
                return self._logarithm(one, 1 / log(2) if name == "log2" else 1)
            case ("max" | "min", [one, two]):
                return _either(one, two)
            case (_, [one]) if name in _HOMOGENEOUS and one.kind == "times":
                return _scaled(one, _HOMOGENEOUS[name])
            case _:
                return None if any(each.by for each in known) else _SAME

    def _added(self, one: _Change, two: _Change, sign: int) -> _Change | None:
        if "infinite" in (one.kind, two.kind):
            return _INFINITE
        if "zero" in (one.kind, two.kind):
            rest = two if one.kind == "zero" else one
            return _scaled(rest, sign) if rest is two and rest.kind == "plus" else rest
        if one.kind == two.kind == "plus":
            return _change("plus", _sum(one.by, two.by, sign))
        return _either(one, two)

    def _multiplied(self, args: tuple[Expr, ...], changes: list[_Change], sign: int) -> _Change | None:
        one, two = changes
        if "zero" in (one.kind, two.kind if sign > 0 else ""):
            return _ZERO
        if "infinite" in (one.kind, two.kind):
            return _INFINITE
        adding = [each for each in changes if each.kind == "plus" and each.by]
        if not adding:
            return _change("times", _sum(one.by, two.by, sign))
        if len(adding) == 2 or (adding[0] is two and sign < 0):
            return None
        own, factor = (one, args[1]) if adding[0] is one else (two, args[0])
        by = self.of(factor)
        return self._times_factor(own, factor, sign) if by is not None and by.kind == "plus" and not by.by else None

    def _times_factor(self, of: _Change, factor: Expr, sign: int) -> _Change:
        value = number(factor)
        if value is not None:
            return _scaled(of, value if sign > 0 else 1 / value)
        if isinstance(factor, Fn) and factor.name == "neg":
            return self._times_factor(_scaled(of, -1), factor.args[0], sign)
        by = factor if sign > 0 else fn("div", 1, factor)
        return _Change("plus", {_Reference(e.of, e.depends, (*e.times, by)): a for e, a in of.by.items()})

    @staticmethod
    def _power(of: _Change, base: float) -> _Change | None:
        if of.kind == "infinite":
            return _ZERO
        return None if of.by and of.kind == "times" else _change("times", _scaled(of, base).by)

    @staticmethod
    def _logarithm(of: _Change, base: float) -> _Change | None:
        if of.kind == "zero":
            return _INFINITE
        if of.kind == "times":
            return _change("plus", _scaled(of, base).by)
        return None if of.by else of
