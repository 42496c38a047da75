"""Expressions as polynomials: exact division, and a lower bound by moving each variable to its own.

What is no sum, product or number is a variable: `M // 128` is one.
"""

from __future__ import annotations

from collections.abc import Mapping

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Bin, Index

Monomial = tuple[Index, ...]
"""Factors in canonical order; the empty product is 1."""
Polynomial = Mapping[Monomial, int]


def monomial(factors: list[Index]) -> Monomial:
    return tuple(sorted(factors, key=lambda factor: factor.digest))


def _factors(atom: Index) -> Monomial:
    found: list[Index] = []
    while isinstance(atom, Bin) and atom.op == "*":
        found.append(atom.right)
        atom = atom.left
    return monomial([*found, atom])


def polynomial(expression: Index) -> Polynomial:
    """The coefficient, not zero, of each monomial."""
    terms, constant = linear_terms(expression)
    found = {_factors(atom): factor for atom, factor in terms}
    if constant:
        found[()] = constant
    return found


def product(factors: Monomial) -> Index:
    result: Index = algebra.const(1)
    for factor in factors:
        result = algebra.mul(result, factor)
    return result


def expression(terms: Polynomial) -> Index:
    return algebra.linear([(product(factors), coefficient) for factors, coefficient in terms.items()], 0)


def without(factors: Monomial, part: Monomial) -> Monomial | None:
    """The factors that are left when those of `part` are taken away; None if one of them is missing."""
    left = list(factors)
    for factor in part:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def _order(factors: Monomial) -> tuple[int, tuple[bytes, ...]]:
    """By degree, then by factors: the order of a product follows that of its parts, so division ends."""
    return len(factors), tuple(factor.digest for factor in factors)


def divided(a: Index, b: Index) -> Index | None:
    """q with a = b * q as polynomials, or None if there is none (or b is 0)."""
    divisor = polynomial(b)
    if not divisor:
        return None
    leading = max(divisor, key=_order)
    rest = dict(polynomial(a))
    quotient: dict[Monomial, int] = {}
    while rest:
        top = max(rest, key=_order)
        factors = without(top, leading)
        if factors is None or rest[top] % divisor[leading]:
            return None
        times = rest[top] // divisor[leading]
        quotient[factors] = times
        for each, coefficient in divisor.items():
            key = monomial([*each, *factors])
            rest[key] = rest.get(key, 0) - times * coefficient
            if rest[key] == 0:
                del rest[key]
    return expression(quotient)


def lowest(difference: Index) -> int | None:
    """A lower bound: with each variable x written as low(x) + x', x' >= 0, no coefficient may be negative."""
    by_range = difference.range[0]
    moved: dict[Monomial, int] = {}
    for factors, coefficient in polynomial(difference).items():
        expanded: dict[Monomial, int] = {(): coefficient}
        for factor in factors:
            low = factor.range[0]
            if low is None:
                return by_range
            expanded = _times(expanded, factor, low)
        for key, value in expanded.items():
            moved[key] = moved.get(key, 0) + value
    constant = moved.pop((), 0)
    if any(value < 0 for value in moved.values()):
        return by_range
    return constant if by_range is None else max(constant, by_range)


def _times(terms: Polynomial, factor: Index, low: int) -> dict[Monomial, int]:
    """The polynomial times (low + factor), where `factor` now stands for what is above its lowest value."""
    result: dict[Monomial, int] = {}
    for factors, coefficient in terms.items():
        for key, value in ((factors, coefficient * low), (monomial([*factors, factor]), coefficient)):
            result[key] = result.get(key, 0) + value
    return result
