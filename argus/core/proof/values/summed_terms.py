"""The terms of sums and extrema, and shapes that tell how values are computed, without coordinates and ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from argus.core.index import Symbol
from argus.core.proof.values.padding import number
from argus.core.values.expr import (
    Choose,
    Compare,
    Element,
    Expr,
    Fn,
    Infinity,
    Number,
    Reduce,
    ReduceOp,
    Whole,
    expr,
    fn,
    infinity,
)

_COLLECTING: Mapping[str, ReduceOp] = {"add": "sum", "sub": "sum", "fma": "sum", "max": "max", "min": "min"}
MOST = 256
"""The most terms of one collection."""


@frozen
class Term:
    """One term of a collection. bound: the variables over which it is collected."""

    of: Expr
    bound: frozenset[Symbol]


class Terms:
    """The terms and shapes of the parts of one expression."""

    def __init__(self) -> None:
        self._flat: dict[tuple[Expr, ReduceOp], tuple[Term, ...] | None] = {}
        self._ops: dict[Expr, ReduceOp | None] = {}
        self._shapes: dict[Expr, int] = {}
        self._known: dict[Hashable, int] = {}

    # -- terms ---------------------------------------------------------------------------------------------

    def op(self, of: Expr) -> ReduceOp | None:
        """What a value collects: the kind of a sum or an extremum, also one that is rounded, chosen or scaled."""
        if of not in self._ops:
            self._ops[of] = self._collects(of)
        return self._ops[of]

    def _collects(self, of: Expr) -> ReduceOp | None:
        match of:
            case Reduce(op=op):
                return op
            case Fn(name=name) if name in _COLLECTING:
                return _COLLECTING[name]
            case Fn(name=name, args=(arg,)) if name.startswith("to "):
                return self.op(arg)
            case Fn(name="neg", args=(arg,)):
                return "sum" if self.op(arg) == "sum" else None
            case Fn(name="mul", args=args):
                summed = [each for each in args if self.op(each) == "sum"]
                return "sum" if len(summed) == 1 else None
            case Choose(test=test, then=then, other=other) if not isinstance(test, Compare):
                found: set[ReduceOp | None] = {self.op(each) for each in (then, other) if number(each) is None}
                return found.pop() if len(found) == 1 else None
            case _:
                return None

    def terms(self, of: Expr, op: ReduceOp) -> tuple[Term, ...] | None:
        """The terms of a value as a part of a collection, each once; None if they are too many."""
        key = of, op
        if key not in self._flat:
            parts = [Term(of, frozenset())] if self.op(of) != op else self._parts(of, op)
            found = None if parts is None else tuple(dict.fromkeys(parts))
            self._flat[key] = None if found is None or len(found) > MOST else found
        return self._flat[key]

    def _parts(self, of: Expr, op: ReduceOp) -> Iterable[Term] | None:
        match of:
            case Reduce(variable=variable, body=body):
                terms = self.terms(body, op)
                return None if terms is None else [Term(each.of, each.bound | {variable}) for each in terms]
            case Fn(name="sub", args=(one, two)):
                return self._parts(fn("add", one, fn("neg", two)), op)
            case Fn(name="fma", args=(one, two, three)):
                return self._parts(fn("add", fn("mul", one, two), three), op)
            case Fn(name="add" | "max" | "min", args=args):
                return self._all([self._beside(each, op) for each in args])
            case Fn(name="neg", args=(arg,)):
                terms = self.terms(arg, op)
                return None if terms is None else [Term(fn("neg", each.of), each.bound) for each in terms]
            case Fn(name="mul", args=(one, two)):
                summed, by = (one, two) if self.op(one) == "sum" else (two, one)
                terms = self.terms(summed, op)
                return None if terms is None else [Term(fn("mul", each.of, by), each.bound) for each in terms]
            case Fn(args=(arg,)):
                return self.terms(arg, op)
            case Choose(then=then, other=other):
                return self._all([self.terms(each, op) for each in (then, other) if number(each) is None])
            case _:
                return [Term(of, frozenset())]

    def _beside(self, of: Expr, op: ReduceOp) -> tuple[Term, ...] | None:
        """The terms of an operand: a multiple of a sum is one term, as a mean is in a difference from it."""
        return (Term(of, frozenset()),) if _is_scaled(of) else self.terms(of, op)

    @staticmethod
    def _all(found: Sequence[tuple[Term, ...] | None]) -> Iterable[Term] | None:
        known = [each for each in found if each is not None]
        return [term for terms in known for term in terms] if len(known) == len(found) else None

    # -- shapes --------------------------------------------------------------------------------------------

    def shape(self, of: Expr) -> int:
        """A number for how a value is computed, the same for values that are computed alike."""
        if of not in self._shapes:
            key = self._key(of)
            self._shapes[of] = key if isinstance(key, int) else self._known.setdefault(key, len(self._known))
        return self._shapes[of]

    def _key(self, of: Expr) -> Hashable:
        op = self.op(of)
        terms = None if op is None else self.terms(of, op)
        if terms is not None and [each.of for each in terms] != [of]:
            return op, frozenset(self.shape(each.of) for each in terms)
        match of:
            case Number(value=value):
                return value
            case Infinity(sign=sign):
                return "infinity", sign
            case Whole():
                return "whole"
            case Element(tensor=tensor):
                return "element", tensor
            case Fn(name="mul" | "neg"):
                return _is_negative(of), tuple(sorted(map(self.shape, factors_of(of))))
            case Fn(name=name, args=(arg,)) if name.startswith("to "):
                return self.shape(arg)
            case Fn(name=name, args=args):
                return name, tuple(map(self.shape, args))
            case Choose(test=Compare(op=test, left=left, right=right), then=then, other=other):
                if (extremum := self.unguarded(of)) is not of:
                    return self.shape(extremum)
                return "where", test, tuple(map(self.shape, (left, right, then, other)))
            case Choose(then=then, other=other):
                shapes = frozenset(self.shape(each) for each in (then, other) if number(each) is None)
                return next(iter(shapes)) if len(shapes) == 1 else shapes
            case Reduce(op=kind, body=body):
                return kind, self.shape(body)

    def cancelled(self, of: Expr) -> Expr:
        """A product of powers of one base as one power, without what cancels in its exponent: references of parts."""
        factors = list(factors_of(of))
        for name in ("exp", "exp2"):
            powers = [each for each in factors if isinstance(each, Fn) and each.name == name]
            if len(powers) > 1:
                exponent = Counter[Expr]()
                for each in powers:
                    for sign, term in self._exponent(each.args[0]):
                        exponent[term] += sign
                left = [_times(term, times) for term, times in exponent.items() if times]
                rest = [each for each in factors if each not in powers]
                one = _folded("mul", [*rest, fn(name, _folded("add", left))])
                return fn("neg", one) if _is_negative(of) else one
        return of

    def _exponent(self, of: Expr) -> Iterator[tuple[int, Expr]]:
        """Its terms with their signs. What stands for a reference where that is infinite is left out."""
        terms = self.terms(of, "sum") or ()
        for each in terms:
            if each.bound or (self.op(each.of) == "sum" and each.of is not of and not _is_scaled(each.of)):
                yield 1, of
                return
        for each in terms:
            factors, sign = list(factors_of(each.of)), -1 if _is_negative(each.of) else 1
            yield sign, _folded("mul", sorted((self.unguarded(factor) for factor in factors), key=self.shape))

    def unguarded(self, of: Expr) -> Expr:
        """An extremum without the number that stands for it where it is infinite, as nothing is in it."""
        match of:
            case Choose(test=Compare(op="==", left=left, right=right), then=then, other=other):
                infinite = {infinity(1 if self.op(other) == "min" else -1), other} == {left, right}
                return other if infinite and number(then) is not None and self.op(other) in ("max", "min") else of
            case _:
                return of


def factors_of(of: Expr) -> Iterator[Expr]:
    """What a value multiplies, without signs, roundings and zeros in place of padding."""
    match of:
        case Fn(name="mul", args=args):
            for each in args:
                yield from factors_of(each)
        case Fn(name=name, args=(arg,)) if name == "neg" or name.startswith("to "):
            yield from factors_of(arg)
        case Choose(test=test, then=then, other=other) if not isinstance(test, Compare) and number(other) == 0:
            yield from factors_of(then)
        case _:
            yield of


def _folded(name: str, parts: Sequence[Expr]) -> Expr:
    """The product or the sum."""
    found: Expr | None = None
    for each in parts:
        found = each if found is None else fn(name, found, each)
    return expr(1 if name == "mul" else 0) if found is None else found


def _times(of: Expr, times: int) -> Expr:
    return of if times == 1 else fn("neg", of) if times == -1 else fn("mul", of, times)


def _is_negative(of: Expr) -> bool:
    """Whether a product has an odd number of signs."""
    match of:
        case Fn(name="neg", args=(arg,)):
            return not _is_negative(arg)
        case Fn(name="mul", args=(one, two)):
            return _is_negative(one) != _is_negative(two)
        case Fn(name=name, args=(arg,)) if name.startswith("to "):
            return _is_negative(arg)
        case _:
            return False


def _is_scaled(of: Expr) -> bool:
    """Whether a value is a product or a negative, up to rounding."""
    match of:
        case Fn(name="mul" | "neg"):
            return True
        case Fn(name=name, args=(arg,)) if name.startswith("to "):
            return _is_scaled(arg)
        case _:
            return False
