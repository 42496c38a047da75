"""Polynomial normal form of index expressions: exact division, and lower bounds from the variables' ranges.

A subexpression that is not a sum, product or constant, such as `M // 128`, is a variable.
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
    """The nonzero coefficient of each monomial."""
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


def divide_monomial(factors: Monomial, part: Monomial) -> Monomial | None:
    """The monomial divided by `part`; None if `part` does not divide it."""
    left = list(factors)
    for factor in part:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def _monomial_order(factors: Monomial) -> tuple[int, tuple[bytes, ...]]:
    """Monomial order: by degree, then by factors. It is compatible with products, so division terminates."""
    return len(factors), tuple(factor.digest for factor in factors)


def exact_quotient(a: Index, b: Index) -> Index | None:
    """q with a = b * q as polynomials; None if there is none or b is 0."""
    divisor = polynomial(b)
    if not divisor:
        return None
    leading = max(divisor, key=_monomial_order)
    rest = dict(polynomial(a))
    quotient: dict[Monomial, int] = {}
    while rest:
        top = max(rest, key=_monomial_order)
        factors = divide_monomial(top, leading)
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


def lower_bound(difference: Index) -> int | None:
    """A lower bound, None if unknown: substitutes x = low(x) + x' with x' >= 0, then needs nonnegative coefficients."""
    by_range = difference.range[0]
    moved: dict[Monomial, int] = {}
    for factors, coefficient in polynomial(difference).items():
        expanded: dict[Monomial, int] = {(): coefficient}
        for factor in factors:
            low = factor.range[0]
            if low is None:
                return by_range
            expanded = _times_shifted(expanded, factor, low)
        for key, value in expanded.items():
            moved[key] = moved.get(key, 0) + value
    constant = moved.pop((), 0)
    if any(value < 0 for value in moved.values()):
        return by_range
    return constant if by_range is None else max(constant, by_range)


def _times_shifted(terms: Polynomial, factor: Index, low: int) -> dict[Monomial, int]:
    """The polynomial times (low + factor), where `factor` now denotes the excess over its lower bound."""
    result: dict[Monomial, int] = {}
    for factors, coefficient in terms.items():
        for key, value in ((factors, coefficient * low), (monomial([*factors, factor]), coefficient)):
            result[key] = result.get(key, 0) + value
    return result
