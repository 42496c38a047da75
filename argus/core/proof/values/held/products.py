"""Sums of products over numbered factors, with rational coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

Monomial = tuple[tuple[int, int], ...]
"""(number of a factor, exponent), sorted."""
Terms = dict[Monomial, Fraction]


def order(monomial: Monomial) -> tuple[int, Monomial]:
    """By degree, then by the exponents of the first factors."""
    return sum(power for _, power in monomial), tuple((-number, power) for number, power in monomial)


def ratio(a: Monomial, b: Monomial) -> Monomial | None:
    powers = dict(a)
    for number, power in b:
        powers[number] = powers.get(number, 0) - power
    return None if any(p < 0 for p in powers.values()) else tuple(sorted((n, p) for n, p in powers.items() if p))


def without(of: Mapping[Monomial, Fraction], gone: set[int]) -> Terms:
    return {monomial: factor for monomial, factor in of.items() if not any(number in gone for number, _ in monomial)}


def total(a: Mapping[Monomial, Fraction], b: Mapping[Monomial, Fraction]) -> Terms:
    found = dict(a)
    for monomial, factor in b.items():
        found[monomial] = found.get(monomial, Fraction(0)) + factor
    return {monomial: factor for monomial, factor in found.items() if factor}


def scaled(of: Mapping[Monomial, Fraction], by: int) -> Terms:
    return {monomial: factor * by for monomial, factor in of.items()}
