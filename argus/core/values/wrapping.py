"""Integers modulo 2^n: what a type of n bits makes of a value, as a function with a normal form.

`wrapped T` of x is the integer of T that differs from x by a multiple of 2^n. An integer multiple of another such value
differs from the multiple of what that wraps by a multiple of 2^n, too: inside, wraps of as many bits or more vanish.
"""

from __future__ import annotations

from fractions import Fraction

from argus.core.values import polynomial as polys
from argus.core.values.atoms import (
    Above,
    Atom,
    Count,
    Holds,
    Inhabited,
    Largest,
    Monomial,
    NoNormalFormError,
    Opaque,
    Poly,
    constant,
    number_of,
    of_atom,
    opaque_atom,
)
from argus.core.values.cases import Infinite, Leaf, Value
from argus.core.wrapping import BITS, wrapped_exactly

_INTEGERS = ("ceil", "floor", "philox", "round", "sign")


def wrapped_form(name: str, leaf: Leaf) -> Value:
    """The normal form of the function of a finite value. Raises NoNormalFormError for another."""
    if isinstance(leaf, Infinite):
        raise NoNormalFormError(f"an argument of `{name}` may be infinite")
    if not isinstance(leaf, Poly):
        return leaf
    bits = BITS[name]
    of = _unwrapped(leaf, bits)
    number = number_of(of)
    return of_atom(opaque_atom(name, (of,))) if number is None else constant(wrapped_exactly(number, bits))


def _unwrapped(of: Poly, bits: int) -> Poly:
    """The polynomial without wraps of as many bits or more, where it is an integer multiple of them."""
    before, found = None, of
    while found is not before:
        before, found = found, polys.add(*(_term(monomial, factor, bits) for monomial, factor in found.terms))
    return found


def _term(monomial: Monomial, factor: Fraction, bits: int) -> Poly:
    whole = polys.of_monomial(monomial, factor)
    inside = [atom for atom, _ in monomial if isinstance(atom, Opaque) and _bits(atom.name) >= bits]
    if not inside or factor.denominator > 1 or not all(_is_integer(atom, power) for atom, power in monomial):
        return whole
    parts = (polys.power(atom.args[0] if atom in inside else of_atom(atom), power) for atom, power in monomial)
    return polys.scale(polys.product(parts), factor)


def _bits(name: str) -> int:
    """The bits in which a function wraps around; 0 for any other."""
    return BITS.get(name, 0)


def _is_integer(atom: Atom, power: Fraction) -> bool:
    """Whether a power of an atom is an integer, whatever it is of."""
    if power.denominator > 1 or power < 0:
        return False
    match atom:
        case Count() | Holds() | Above() | Inhabited():
            return True
        case Opaque(name=name, args=args):
            return name in _INTEGERS or (name in BITS and all(map(_is_whole, args)))
        case Largest(of=of):
            return all(map(_is_whole, of))
        case _:
            return False


def _is_whole(of: Poly) -> bool:
    return all(factor.denominator == 1 and _is_integer(*power) for monomial, factor in of.terms for power in monomial)
