"""Bodies that name their bound variable in whole multiples only: the same over the multiples, with a condition.

The sum of f(2 i) is that of f(j) where j is even: so the sums of even and of odd places are one sum.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Bin, Cmp, Cond, Index, Symbol
from argus.core.values.atoms import Poly
from argus.core.values.ends import greater, lesser
from argus.core.values.places import coordinates
from argus.core.walk import substitute, symbols


def stride(parts: tuple[Poly, ...], variable: Symbol) -> int:
    """The greatest number by a multiple of which each coordinate moves with the variable; 1 if there is none."""
    found = 0
    for index in coordinates(parts, variable):
        factor = _factor(index, variable)
        if factor is None:
            return 1
        terms, constant = linear_terms(factor)
        found = gcd(found, constant, *(each for _, each in terms))
    return max(1, abs(found))


def _factor(index: Index, variable: Symbol) -> Index | None:
    """The factor of the variable in an index that is linear in it."""
    zero, one = (substitute(index, {variable: algebra.const(number)}) for number in (0, 1))
    factor = algebra.sub(one, zero)
    linear = algebra.add(algebra.mul(factor, algebra.sym(variable)), zero) is index
    return factor if linear and variable not in symbols(factor) else None


def divided(variable: Symbol, by: int) -> tuple[Callable[[Index], Index], Callable[[Cond], Cond]]:
    """Maps for coordinates and conditions: the variable becomes the multiple that it was taken times."""

    def on_index(index: Index) -> Index:
        factor = _factor(index, variable)
        if factor is None:
            return index
        less = algebra.sub(factor, algebra.floordiv(factor, by))
        return algebra.sub(index, algebra.mul(algebra.sym(variable), less))

    def on_cond(cond: Cond) -> Cond:
        if not isinstance(cond, Cmp) or variable not in symbols(cond):
            return cond
        difference = on_index(algebra.sub(cond.left, cond.right))
        return algebra.eq(difference, 0) if cond.op == "==" else algebra.le(difference, 0)

    return on_index, on_cond


def times(end: Index, by: int) -> Index:
    """h with i < end exactly where by * i < h: without the quotient that the end is, if it is one."""
    for op, join in (("min", lesser), ("max", greater)):
        if isinstance(end, Bin) and end.op == op:
            return join(times(end.left, by), times(end.right, by))
    for atom, factor in linear_terms(end)[0]:
        if factor == 1 and isinstance(atom, Bin) and atom.op == "//" and atom.right is algebra.const(by):
            rest = algebra.sub(end, atom)
            return algebra.add(atom.left, algebra.mul(algebra.sub(rest, 1), by), 1)
    return algebra.mul(end, by)


def is_multiple(variable: Symbol, by: int) -> Cond:
    """The condition that the variable is a multiple."""
    return algebra.eq(algebra.mod(algebra.sym(variable), by), 0)
