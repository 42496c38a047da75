"""Maxima as unknown numbers: what is subtracted and added again does not matter, as long as it is a number.

A maximum over a set that may be empty is a number only where the set is not. In a product that is 0 where the set is
empty, whatever stands in place of the maximum, it may be any number there.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.proof.values.held.emptiness import Facts, Nothing, has_element, leaves
from argus.core.proof.values.held.parts import Parts
from argus.core.proof.values.held.terms import exchanged, mapped
from argus.core.values.equality import Equal, by_normal_forms
from argus.core.values.expr import Choose, Compare, Expr, Fn, Reduce, expr, infinity, reduce_
from argus.core.values.numbers import above_zero
from argus.core.values.rewriting import free_symbols

_ZERO, _NOTHING = expr(0), infinity(-1)
_FEW = 4


@define(eq=False)
class References:
    """Puts unknown numbers in place of maxima, in several expressions the same for the same."""

    _parts: Parts = field(factory=lambda: Parts("maximum"), init=False)

    def freed(self, root: Expr, known: Facts) -> Expr:
        """The expression with the maxima replaced that are numbers here, or need not be."""
        done: dict[Expr, Expr] = {}

        def visit(of: Expr) -> Expr:
            if of not in done:
                done[of] = once(of)
            return done[of]

        def once(of: Expr) -> Expr:
            if _is_maximum(of):
                return self._parts.number(of) if has_element(known, of) else of
            if isinstance(of, Reduce):
                return self._over(of, known)
            made = mapped(of, visit, lambda index: index, lambda cond: cond)
            return self._in_product(made, known) if isinstance(made, Fn) and made.name == "mul" else made

        return visit(root)

    def _over(self, of: Reduce, known: Facts) -> Expr:
        here = algebra.sym(of.variable)
        within = known.within(algebra.le(of.low, here), algebra.lt(here, of.high), of.where)
        return reduce_(of.op, of.variable, of.low, of.high, self.freed(of.body, within), of.where)

    def _in_product(self, of: Expr, known: Facts) -> Expr:
        """A product without the maxima that do not matter in it; with numbers for those that need not be -inf."""
        for _ in range(_FEW):
            found = next(filter(None, (self._free(of, each, known) for each in dict.fromkeys(_outermost(of)))), None)
            if found is None:
                break
            of = found
        return of

    def _free(self, of: Expr, maximum: Expr, known: Facts) -> Expr | None:
        """The product with a maximum replaced, if it is 0 where the maximum is -inf, with any number in its place."""
        nothing = Nothing(known, tuple(leaves(maximum)))
        number = exchanged(of, {maximum: self._parts.number(maximum)})
        if not (nothing.vanishes(exchanged(of, {maximum: _NOTHING})) and nothing.vanishes(number)):
            return None
        without = exchanged(of, {maximum: _ZERO})
        return without if by_normal_forms(number, without) == Equal(frozenset()) else number


def _is_maximum(of: Expr) -> bool:
    """Whether the value is a maximum; the sign of one that is above 0 may matter where another is -inf."""
    found = (isinstance(of, Fn) and of.name == "max") or (isinstance(of, Reduce) and of.op == "max")
    return found and above_zero(of) != ()


def _outermost(root: Expr, bound: frozenset[Symbol] = frozenset()) -> Iterator[Expr]:
    """The outermost maxima of an expression that do not depend on what is bound within it."""
    if _is_maximum(root) and free_symbols(root).isdisjoint(bound):
        yield root
        return
    match root:
        case Fn(args=args):
            for each in args:
                yield from _outermost(each, bound)
        case Choose(test=test, then=then, other=other):
            parts = (test.left, test.right) if isinstance(test, Compare) else ()
            for each in (*parts, then, other):
                yield from _outermost(each, bound)
        case Reduce(variable=variable, body=body):
            yield from _outermost(body, bound | {variable})
        case _:
            pass
