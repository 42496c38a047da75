"""Expressions as sums of products, in which sums of sums are one sum over the axes of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import evolve, frozen

from argus.nests.nest import Apply, Axis, Constant, Expr, Reduce
from argus.nests.rewrite import expressions, placed
from argus.nests.simplify import apply

Fresh = Callable[[Axis], Axis]
"""An axis of the same extent with a name of its own."""


@frozen
class Term:
    """The sum over axes of a product, divided by what does not depend on them; negated if `negative`."""

    axes: tuple[Axis, ...]
    factors: tuple[Expr, ...]
    divisors: tuple[Expr, ...] = ()
    negative: bool = False

    def over(self, axes: tuple[Axis, ...]) -> Term:
        return evolve(self, axes=(*axes, *self.axes))

    @property
    def negated(self) -> Term:
        return evolve(self, negative=not self.negative)


def terms_of(expr: Expr, fresh: Fresh) -> tuple[Term, ...] | None:
    """The terms whose sum the expression is; None if a sum is within what is no sum or product.

    Parts without sums stay together.
    """
    if not _sums(expr):
        return None if _reduces(expr) else (_product(expr),)
    match expr:
        case Apply(op="add" | "sub", args=(left, right)):
            a, b = terms_of(left, fresh), terms_of(right, fresh)
            if a is None or b is None:
                return None
            return _joined((*a, *(each.negated if expr.op == "sub" else each for each in b)))
        case Apply(op="neg", args=(of,)):
            found = terms_of(of, fresh)
            return None if found is None else tuple(each.negated for each in found)
        case Apply(op="mul", args=(left, right)):
            return _times(left, right, fresh) if _sums(left) else _times(right, left, fresh)
        case Apply(op="div", args=(of, divisor)) if not _reduces(divisor):
            found = terms_of(of, fresh)
            return None if found is None else tuple(evolve(e, divisors=(*e.divisors, divisor)) for e in found)
        case Reduce(op="add", axes=axes, body=body):
            own = {axis: fresh(axis) for axis in axes}
            places = {axis.symbol: new.index for axis, new in own.items()}
            found = terms_of(placed(body, places), fresh)
            return None if found is None else tuple(each.over(tuple(own.values())) for each in found)
        case _:
            return None


def _times(sums: Expr, other: Expr, fresh: Fresh) -> tuple[Term, ...] | None:
    found = None if _reduces(other) else terms_of(sums, fresh)
    if found is None:
        return None
    by = _product(other)
    return tuple(
        evolve(
            each,
            factors=(*each.factors, *by.factors),
            divisors=(*each.divisors, *by.divisors),
            negative=each.negative is not by.negative,
        )
        for each in found
    )


def _product(expr: Expr) -> Term:
    """A value without sums as one product."""
    match expr:
        case Apply(op="mul", args=(left, right)):
            a, b = _product(left), _product(right)
            return Term((), (*a.factors, *b.factors), (*a.divisors, *b.divisors), a.negative is not b.negative)
        case Apply(op="div", args=(of, divisor)):
            found = _product(of)
            return evolve(found, divisors=(*found.divisors, divisor))
        case Apply(op="neg", args=(of,)):
            return _product(of).negated
        case _:
            return Term((), (expr,))


def _joined(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Those without axes as one."""
    found = tuple(terms)
    plain = [each for each in found if not each.axes]
    if len(plain) < 2:
        return found
    return (
        *(each for each in found if each.axes),
        Term((), (total(map(value_of, plain), [e.negative for e in plain]),)),
    )


def value_of(term: Term) -> Expr:
    """What the term is, but for its sign."""
    value = product(term.factors)
    body: Expr = Reduce("add", term.axes, value) if term.axes else value
    for each in term.divisors:
        body = apply("div", body, each)
    return body


def product(factors: Iterable[Expr]) -> Expr:
    """The product of values, 1 of none."""
    result: Expr = Constant(1.0)
    for each in factors:
        result = apply("mul", result, each)
    return result


def total(values: Iterable[Expr], negative: Iterable[bool]) -> Expr:
    """The sum of values, of which some are subtracted."""
    result: Expr = Constant(0.0)
    for value, less in zip(values, negative, strict=True):
        if result == Constant(0.0):
            result = apply("neg", value) if less else value
        else:
            result = apply("sub" if less else "add", result, value)
    return result


def _sums(expr: Expr) -> bool:
    return any(isinstance(each, Reduce) and each.op == "add" for each in expressions(expr))


def _reduces(expr: Expr) -> bool:
    return any(isinstance(each, Reduce) for each in expressions(expr))
