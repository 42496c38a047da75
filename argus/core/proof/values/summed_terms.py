"""The terms of sums and extrema, and shapes that tell how values are computed, without coordinates and ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

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

_COLLECTING: Mapping[str, ReduceOp] = {"add": "sum", "sub": "sum", "max": "max", "min": "min"}
MOST = 256
"""The most terms of one collection."""


@frozen
class Term:
    """One term of a collection. bound: the variables over which it is collected. times: how often it is added."""

    of: Expr
    bound: frozenset[Symbol] = frozenset()
    times: int = 1


@frozen
class Product:
    """What a value multiplies, each with how often it does, and whether it has an odd number of signs."""

    factors: tuple[tuple[Expr, int], ...]
    negative: bool = False


class Terms:
    """The terms and shapes of the parts of one expression."""

    def __init__(self) -> None:
        self._flat: dict[tuple[Expr, ReduceOp], tuple[Term, ...] | None] = {}
        self._ops: dict[Expr, ReduceOp | None] = {}
        self._shapes: dict[Expr, int] = {}
        self._products: dict[Expr, Product] = {}
        self._known: dict[Hashable, int] = {}

    # -- terms ---------------------------------------------------------------------------------------------

    def op(self, of: Expr) -> ReduceOp | None:
        """What a value collects: the kind of a sum or an extremum, also one that is chosen or scaled."""
        if of not in self._ops:
            self._ops[of] = self._collects(of)
        return self._ops[of]

    def _collects(self, of: Expr) -> ReduceOp | None:
        match of:
            case Reduce(op=op):
                return op
            case Fn(name=name) if name in _COLLECTING:
                return _COLLECTING[name]
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
            parts = [Term(of)] if self.op(of) != op else self._parts(of, op)
            found = None if parts is None else _together(parts, op)
            self._flat[key] = None if found is None or len(found) > MOST else found
        return self._flat[key]

    def _parts(self, of: Expr, op: ReduceOp) -> Iterable[Term] | None:
        match of:
            case Reduce(variable=variable, body=body):
                terms = self.terms(body, op)
                return None if terms is None else [evolve(each, bound=each.bound | {variable}) for each in terms]
            case Fn(name="sub", args=(one, two)):
                return self._parts(fn("add", one, fn("neg", two)), op)
            case Fn(name="add" | "max" | "min", args=args):
                return self._all([self._beside(each, op) for each in args])
            case Fn(name="neg", args=(arg,)):
                terms = self.terms(arg, op)
                return None if terms is None else [evolve(each, of=fn("neg", each.of)) for each in terms]
            case Fn(name="mul", args=(one, two)):
                summed, by = (one, two) if self.op(one) == "sum" else (two, one)
                terms = self.terms(summed, op)
                return None if terms is None else [evolve(each, of=fn("mul", each.of, by)) for each in terms]
            case Choose(then=then, other=other):
                return self._all([self.terms(each, op) for each in (then, other) if number(each) is None])
            case _:
                return [Term(of)]

    def _beside(self, of: Expr, op: ReduceOp) -> tuple[Term, ...] | None:
        """The terms of an operand: a multiple of a sum is one term, as a mean is in a difference from it."""
        return (Term(of),) if _is_scaled(of) else self.terms(of, op)

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
            return op, frozenset((self.shape(each.of), each.times) for each in terms)
        match of:
            case Number(value=value):
                return value
            case Infinity(sign=sign):
                return "infinity", sign
            case Whole(index=index):
                return "whole", index
            case Element(tensor=tensor):
                return "element", tensor
            case Fn(name="mul" | "neg"):
                product = self.product(of)
                return product.negative, tuple(sorted((self.shape(each), n) for each, n in product.factors))
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

    def product(self, of: Expr) -> Product:
        """A value as a product, without zeros in place of padding. Parts that occur often are looked at once."""
        if of not in self._products:
            self._products[of] = self._product(of)
        return self._products[of]

    def _product(self, of: Expr) -> Product:
        match of:
            case Fn(name="mul", args=(one, two)):
                left, right = self.product(one), self.product(two)
                factors = Counter(dict(left.factors))
                for each, times in right.factors:
                    factors[each] += times
                return Product(tuple(factors.items()), negative=left.negative != right.negative)
            case Fn(name="neg", args=(arg,)):
                inner = self.product(arg)
                return evolve(inner, negative=not inner.negative)
            case Choose(test=test, then=then, other=other) if not isinstance(test, Compare) and number(other) == 0:
                return self.product(then)
            case _:
                return Product(((of, 1),))

    def cancelled(self, of: Expr) -> Expr:
        """A product of powers of one base as one power, without what cancels in its exponent: references of parts."""
        product = self.product(of)
        for name in ("exp", "exp2"):
            powers = [(each, n) for each, n in product.factors if isinstance(each, Fn) and each.name == name]
            if sum(n for _, n in powers) > 1:
                exponent = Counter[Expr]()
                for each, n in powers:
                    for sign, term in self._exponent(each.args[0]):
                        exponent[term] += sign * n
                left = [_times(term, times) for term, times in exponent.items() if times]
                rest = [_power(each, n) for each, n in product.factors if (each, n) not in powers]
                one = _folded("mul", [*rest, fn(name, _folded("add", left))])
                return fn("neg", one) if product.negative else one
        return of

    def _exponent(self, of: Expr) -> Iterator[tuple[int, Expr]]:
        """Its terms with their signs. What stands for a reference where that is infinite is left out."""
        terms = self.terms(of, "sum") or ()
        for each in terms:
            if each.bound or (self.op(each.of) == "sum" and each.of is not of and not _is_scaled(each.of)):
                yield 1, of
                return
        for each in terms:
            product = self.product(each.of)
            factors = (_power(self.unguarded(factor), n) for factor, n in product.factors)
            yield (-1 if product.negative else 1) * each.times, _folded("mul", sorted(factors, key=self.shape))

    def unguarded(self, of: Expr) -> Expr:
        """An extremum without the number that stands for it where it is infinite, as nothing is in it."""
        match of:
            case Choose(test=Compare(op="==", left=left, right=right), then=then, other=other):
                infinite = {infinity(1 if self.op(other) == "min" else -1), other} == {left, right}
                return other if infinite and number(then) is not None and self.op(other) in ("max", "min") else of
            case _:
                return of


def _together(parts: Iterable[Term], op: ReduceOp) -> tuple[Term, ...]:
    """Each term once, with how often a sum has it."""
    found: dict[Term, int] = {}
    for each in parts:
        one = evolve(each, times=1)
        found[one] = found.get(one, 0) + each.times if op == "sum" else 1
    return tuple(evolve(each, times=times) for each, times in found.items())


def _folded(name: str, parts: Sequence[Expr]) -> Expr:
    """The product or the sum."""
    found: Expr | None = None
    for each in parts:
        found = each if found is None else fn(name, found, each)
    return expr(1 if name == "mul" else 0) if found is None else found


def _times(of: Expr, times: int) -> Expr:
    return of if times == 1 else fn("neg", of) if times == -1 else fn("mul", of, times)


def _power(of: Expr, times: int) -> Expr:
    return of if times == 1 else fn("pow", of, times)


def _is_scaled(of: Expr) -> bool:
    """Whether a value is a product or a negative."""
    return isinstance(of, Fn) and of.name in ("mul", "neg")
