"""Atoms of equal contents are equal: found where the contents are quotients, whose normal forms are not unique.

N / (1 + N) and 1 - 1 / (1 + N) are one number. A sum of them is found to be 0 by clearing denominators; within a root,
a logarithm or a function nothing may be cleared, so there the contents of two atoms are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.values import polynomial as polys
from argus.core.values.atoms import (
    ONE,
    ZERO,
    Above,
    Atom,
    Base,
    Exp,
    Largest,
    Monomial,
    Opaque,
    Poly,
    constant,
    count_atom,
    inner,
    of_atom,
    sorted_monomial,
)

Cleared = Callable[[Poly], Poly]
"""A polynomial that is 0 exactly where its argument is, without denominators."""
_ATOMS = 24
"""Atoms of one kind that are compared, at most."""
_SCALE = of_atom(count_atom(algebra.sym(Symbol("#scale", "fresh"))))


def unified(value: Poly, cleared: Cleared) -> Poly:
    """The polynomial with one of the atoms that have equal contents in place of all of them."""
    return _exponents_unified(_atoms_unified(value, cleared), cleared)


def _atoms_unified(value: Poly, cleared: Cleared) -> Poly:
    atoms = {atom for monomial, _ in value.terms for atom, _ in monomial}
    kept: list[Atom] = []
    by: dict[Atom, tuple[Fraction, Atom]] = {}
    for atom in sorted((each for each in atoms if _may_be_another(each)), key=lambda each: each.digest)[:_ATOMS]:
        for other in kept:
            if (factor := _ratio(atom, other, cleared)) is not None:
                by[atom] = factor, other
                break
        else:
            kept.append(atom)
    return _replaced(value, by) if by else value


def _may_be_another(atom: Atom) -> bool:
    return isinstance(atom, Base | Opaque | Largest | Above) and any(map(has_quotient, inner(atom)))


@lru_cache(maxsize=1 << 13)
def has_quotient(value: Poly) -> bool:
    """Whether something is divided by within the polynomial."""
    return any(
        (isinstance(atom, Base) and power < 0) or any(map(has_quotient, inner(atom)))
        for monomial, _ in value.terms
        for atom, power in monomial
    )


def _ratio(a: Atom, b: Atom, cleared: Cleared) -> Fraction | None:
    """c above 0 with contents(a) = c contents(b), 1 for those of functions; None if that is not found."""
    match a, b:
        case (Base(of=x), Base(of=y)) | (Above(of=x), Above(of=y)):
            return proportional(x, y, cleared)
        case Largest(of=(x, y)), Largest(of=(z, w)) if x is z is ZERO:
            return proportional(y, w, cleared)
        case Opaque(name=name, args=args), Opaque(name=other, args=others) if name == other:
            same = len(args) == len(others) and all(
                x is y or cleared(polys.sub(x, y)) is ZERO for x, y in zip(args, others, strict=True)
            )
            return Fraction(1) if same else None
        case _:
            return None


def proportional(x: Poly, y: Poly, cleared: Cleared) -> Fraction | None:
    """c above 0 with x = c y, for all values of the atoms."""
    parts: tuple[dict[Monomial, Fraction], dict[Monomial, Fraction]] = {}, {}
    ((scale, _),) = _SCALE.terms[0][0]
    for monomial, factor in cleared(polys.add(x, polys.mul(_SCALE, y))).terms:
        rest = tuple(pair for pair in monomial if pair[0] is not scale)
        parts[len(monomial) - len(rest)][rest] = factor
    left, right = parts
    if not left or left.keys() != right.keys():
        return None
    ratios = {left[monomial] / right[monomial] for monomial in left}
    found = ratios.pop()
    return found if not ratios and found > 0 else None


def _replaced(value: Poly, by: dict[Atom, tuple[Fraction, Atom]]) -> Poly:
    """Each atom as a multiple of another; a test and a function are not multiplied."""
    parts: list[Poly] = []
    for monomial, factor in value.terms:
        term = constant(factor)
        for atom, power in monomial:
            times, other = by.get(atom, (Fraction(1), atom))
            scaled = isinstance(atom, Base | Largest)
            term = polys.product([term, of_atom(other, power), polys.number_power(times, power) if scaled else ONE])
        parts.append(term)
    return polys.add(*parts)


def _exponents_unified(value: Poly, cleared: Cleared) -> Poly:
    """Terms whose exponents are equal get one exponential."""
    kept: list[tuple[Poly, Monomial]] = []
    parts: list[Poly] = []
    for monomial, factor in value.terms:
        powers = [(atom, power) for atom, power in monomial if isinstance(atom, Exp)]
        exponent = polys.add(*(polys.scale(atom.of, power) for atom, power in powers))
        if not powers or not has_quotient(exponent):
            parts.append(polys.of_monomial(monomial, factor))
            continue
        one = sorted_monomial(powers)
        for other, known in kept[:_ATOMS]:
            if other is exponent or cleared(polys.sub(other, exponent)) is ZERO:
                one = known
                break
        else:
            kept.append((exponent, one))
        rest = tuple(pair for pair in monomial if not isinstance(pair[0], Exp))
        parts.append(polys.mul(polys.of_monomial(rest, factor), polys.of_monomial(one)))
    return polys.add(*parts)
