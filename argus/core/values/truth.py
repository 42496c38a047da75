"""Conditions as polynomials that are 1 where they hold, else 0."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Bin, Cmp, Cond, Index, Not
from argus.core.values import polynomial as polys
from argus.core.values.atoms import (
    ONE,
    ZERO,
    Poly,
    above_atom,
    holds_atom,
    number_of,
    of_atom,
)
from argus.core.values.ends import residue, undivided


@lru_cache(maxsize=1 << 13)
def holds(cond: Cond) -> Poly:
    """1 where the condition holds, else 0: of a comparison and of its negation, one is the atom."""
    if cond is algebra.TRUE:
        return ONE
    if cond is algebra.FALSE:
        return ZERO
    if isinstance(cond, Not):
        return polys.sub(ONE, holds(cond.part))
    if isinstance(cond, Cmp):
        if (whole := undivided(cond)) is not cond:
            return holds(whole)
        if (rest := residue(cond)) is not None:
            return _remainder(cond, *rest)
        if (parts := _by_operands(cond)) is not None:
            return parts
        other = algebra.negate(cond)
        if isinstance(other, Cmp) and other.digest < cond.digest:
            return polys.sub(ONE, of_atom(holds_atom(other)))
        return of_atom(holds_atom(cond))
    parts = cond.parts
    if algebra.all_of(parts) is cond:
        return polys.product(map(holds, parts))
    return polys.sub(ONE, polys.product(polys.sub(ONE, holds(part)) for part in parts))


def _remainder(cond: Cond, of: Index, divisor: int, remainder: int) -> Poly:
    """Of x % d == r: the remainders of all numbers but the last one are atoms, of x without a constant."""
    if remainder < 0:
        return ZERO
    each = [algebra.eq(algebra.mod(of, divisor), number) for number in range(divisor)]
    if remainder == divisor - 1:
        return polys.sub(ONE, polys.add(*map(holds, each[:-1])))
    return of_atom(holds_atom(cond)) if each[remainder] is cond else holds(each[remainder])


def _by_operands(cond: Cmp) -> Poly | None:
    """x <= min(a, b) as x <= a and x <= b, and likewise for maxima: so that a shift of both sides changes nothing."""
    if cond.op != "<=":
        return None
    difference = algebra.sub(cond.right, cond.left)
    for atom, factor in linear_terms(difference)[0]:
        if isinstance(atom, Bin) and atom.op in ("min", "max") and factor in (1, -1):
            rest = algebra.sub(difference, algebra.mul(atom, factor))
            one, two = (
                holds(algebra.le(0, algebra.add(rest, algebra.mul(operand, factor))))
                for operand in (atom.left, atom.right)
            )
            if (atom.op == "min") == (factor > 0):
                return polys.mul(one, two)
            return polys.sub(polys.add(one, two), polys.mul(one, two))
    return None


@lru_cache(maxsize=1 << 13)
def above(value: Poly) -> Poly:
    """1 where the value is above 0, else 0."""
    number = number_of(value)
    if number is not None:
        return ONE if number > 0 else ZERO
    size = sum((abs(factor) for _, factor in value.terms), Fraction(0))
    return of_atom(above_atom(polys.scale(value, 1 / size)))
