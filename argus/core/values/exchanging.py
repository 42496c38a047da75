"""Sums of sums in one order, and sums over the numbers with one remainder as sums over their quotients.

Each is an identity of all bodies; the sums that it is made of are the caller's, in normal form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from argus.core import algebra
from argus.core.index import Bin, Const, Index, Sum, Symbol
from argus.core.values import polynomial as polys
from argus.core.values.atoms import ONE, Holds, Monomial, Poly, Prefix, of_atom, single
from argus.core.values.ends import greater, lesser
from argus.core.values.literals import remainder
from argus.core.values.places import coordinates, share_a_place, shift, unused
from argus.core.values.strides import stride
from argus.core.walk import symbols

_INNER, _OUTER = Symbol("inner#", "fresh"), Symbol("outer#", "fresh")
"""In place of the variables of two sums."""
_IN_PLACE = 1, algebra.const(0)
"""The sign and the shift of a variable that stays as it is."""
_FEW = 8
"""Remainders over which a sum is spelled out, at most."""


class SumOf(Protocol):
    """The sum of a body over [0, bound), in normal form."""

    def __call__(self, variable: Symbol, bound: Index, body: Poly, *, product: bool) -> Poly: ...


class Replace(Protocol):
    """A polynomial with symbols replaced, in normal form."""

    def __call__(self, value: Poly, names: Mapping[Symbol, Index]) -> Poly: ...


def exchanged(
    variable: Symbol, bound: Index, inner: Monomial, sum_of: SumOf, replace: Replace, *, shifted: bool
) -> Poly | None:
    """A sum of sums whose inner range is free of the outer variable: the order is that of the ranges' forms.

    Of equal ranges it is that of the bodies, with one variable outside and with another. Where no coordinate names
    both variables, their ranges are compared as shifted.
    """
    for pair in inner:
        atom, exponent = pair
        if not isinstance(atom, Prefix) or atom.product or exponent != 1 or variable in symbols(atom.bound):
            continue
        rest = tuple(other for other in inner if other is not pair)
        if atom.bound.digest > bound.digest or share_a_place(atom.body, variable, atom.variable) is shifted:
            return None
        outside = polys.of_monomial(rest)
        fresh = unused(atom.free | atom.body.free | outside.free | symbols(bound) | {variable})
        body = polys.mul(replace(atom.body, {atom.variable: algebra.sym(fresh)}), outside)
        if atom.bound is not bound:
            return sum_of(fresh, atom.bound, sum_of(variable, bound, body, product=False), product=False)
        return _of_equal_ranges(variable, fresh, bound, body, sum_of, replace)
    return None


def _of_equal_ranges(
    outer: Symbol, inner: Symbol, bound: Index, body: Poly, sum_of: SumOf, replace: Replace
) -> Poly | None:
    """A sum over variables of equal ranges with another one outside; None if the outer one is to be outside.

    That is the one whose body, with that variable and all others named alike, comes last: so it does not depend on the
    order in which they were. Bodies of several terms, with tests, or whose variables are to be shifted are others
    once they are summed: their sums stay as they are.
    """
    variables, core = [outer, inner], body
    while (found := _sum_within(core, bound)) is not None:
        monomial, atom = found
        fresh = unused(core.free | atom.body.free | symbols(bound) | set(variables))
        rest = tuple(pair for pair in monomial if pair[0] is not atom)
        core = polys.mul(replace(atom.body, {atom.variable: algebra.sym(fresh)}), polys.of_monomial(rest))
        variables.append(fresh)
    alone = single(core)
    if alone is None or any(isinstance(atom, Holds) for atom, _ in alone[0]):
        return None
    if any((shift((core,), each) or _IN_PLACE) != _IN_PLACE for each in variables):
        return None

    def key(of: Symbol) -> bytes:
        names = {each: algebra.sym(_OUTER if each is of else _INNER) for each in variables}
        return replace(core, names).digest

    keys = {each: key(each) for each in variables}
    chosen = max(variables, key=lambda each: keys[each])
    if keys[chosen] == keys[outer]:
        return None
    for each in (*(each for each in reversed(variables) if each is not chosen), chosen):
        core = sum_of(each, bound, core, product=False)
    return core


def _sum_within(core: Poly, bound: Index) -> tuple[Monomial, Prefix] | None:
    """The only term of a body, and a sum in it over a range of this length."""
    alone = single(core)
    if alone is None or alone[1] != 1:
        return None
    for atom, exponent in alone[0]:
        if isinstance(atom, Prefix) and not atom.product and exponent == 1 and atom.bound is bound:
            return alone[0], atom
    return None


def by_quotients(
    variable: Symbol, bound: Index, test: Holds, body: Poly, sum_of: SumOf, replace: Replace
) -> Poly | None:
    """The sum of a body over the numbers below a bound with one remainder, as one over their quotients.

    The sum of f(v // 2) over the even v below b is that of f(i) over all i below the half of b, rounded up. None for
    other tests, and for a body that then names multiples of the quotient.
    """
    found = remainder(variable, of_atom(test))
    if found is None or found[3] is not ONE:
        return None
    shift, divisor, rest, _ = found
    return _over_quotients(variable, bound, body, divisor, algebra.sub(rest, shift), sum_of, replace)


def of_quotients(variable: Symbol, bound: Index, body: Poly, sum_of: SumOf, replace: Replace) -> Poly | None:
    """The sum over [0, bound) of a body that names only quotients and remainders of the variable, over the quotients.

    The sum of f(v // 2, v % 2) is that of f(i, 0), over the even v, and of f(i, 1), over the odd ones.
    """
    divisor = _divisor(variable, body)
    if divisor is None:
        return None
    parts = [_over_quotients(variable, bound, body, divisor, algebra.const(r), sum_of, replace) for r in range(divisor)]
    known = [each for each in parts if each is not None]
    return polys.add(*known) if len(known) == divisor else None


def _over_quotients(
    variable: Symbol, bound: Index, body: Poly, divisor: int, first: Index, sum_of: SumOf, replace: Replace
) -> Poly | None:
    """The sum over the numbers divisor * i + first."""
    quotient = unused(body.free | symbols(bound, first) | {variable})
    here = replace(body, {variable: algebra.add(algebra.mul(algebra.sym(quotient), divisor), first)})
    if stride((here,), quotient) != 1:
        return None
    ends = (_above(algebra.sub(each, first), divisor) for each in (bound, algebra.const(0)))
    return polys.sub(*(sum_of(quotient, each, here, product=False) for each in ends))


def _divisor(variable: Symbol, body: Poly) -> int | None:
    """The number by which each coordinate and test divides the variable, if none names it otherwise.

    Remainders by that number, too.
    """
    found = set[int]()
    for index in coordinates((body,), variable):
        own = _divisors(index, variable)
        if own is None:
            return None
        found |= own
    return found.pop() if len(found) == 1 and 1 < max(found) <= _FEW else None


def _divisors(index: Index, variable: Symbol) -> frozenset[int] | None:
    """The numbers by which the variable is divided in an index expression; None if it occurs otherwise."""
    if variable not in symbols(index):
        return frozenset()
    match index:
        case Bin(op="//" | "%", right=Const(value=divisor)):
            return frozenset((divisor,))
        case Bin(op="min" | "max" | "*", left=left, right=right):
            parts = (left, right)
        case Sum(terms=terms):
            parts = tuple(atom for atom, _ in terms)
        case _:
            return None
    found = [_divisors(each, variable) for each in parts]
    known = [each for each in found if each is not None]
    return frozenset[int]().union(*known) if len(known) == len(found) else None


def _above(end: Index, divisor: int) -> Index:
    """The least i with divisor * i at least the end."""
    for op, join in (("min", lesser), ("max", greater)):
        if isinstance(end, Bin) and end.op == op:
            return join(_above(end.left, divisor), _above(end.right, divisor))
    return algebra.floordiv(algebra.add(end, divisor - 1), divisor)
