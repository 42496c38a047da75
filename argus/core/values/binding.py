"""Sums, products and maxima over ranges, and the substitution that they need.

A sum over [a, b) is prefix(b) - prefix(a). Conditions on the bound variable become bounds; the variable is shifted so
that the first coordinate that names it is the variable itself; constant offsets of a bound are spelled out. So the
adjacent ranges of a loop telescope, and a loop over blocks equals the loop over their elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Cmp, Cond, Index, Symbol
from argus.core.values import polynomial as polys
from argus.core.values.atoms import (
    ONE,
    ZERO,
    Above,
    Atom,
    Base,
    Cell,
    Count,
    Exp,
    Greatest,
    Holds,
    Inhabited,
    Largest,
    Monomial,
    NoNormalFormError,
    Opaque,
    Poly,
    Prefix,
    bound_variable,
    cell,
    greatest_atom,
    inhabited_atom,
    number_of,
    of_atom,
    prefix_atom,
    single,
)
from argus.core.values.ends import clipped, end, lesser, of_maximum, rounded, unclipped
from argus.core.values.exchanging import by_quotients, exchanged, of_quotients
from argus.core.values.literals import folded, literals, remainder, rewritten, rounded_by
from argus.core.values.meeting import before, over_iterations
from argus.core.values.nested_tests import divided
from argus.core.values.opaque import opaque
from argus.core.values.places import limit as limit_of
from argus.core.values.places import moved, point_of, shift, turned, unused
from argus.core.values.strides import divided as divided_coordinates
from argus.core.values.strides import is_multiple, stride, times
from argus.core.values.telescoping import telescoped
from argus.core.values.truth import above, holds
from argus.core.walk import substitute, symbols

Symbols = Mapping[Symbol, Index]
_SPELLED_OUT = 8
_EXPANDED = 64
"""Terms of a product that is spelled out, at most."""


@lru_cache(maxsize=1 << 14)
def _replaced(value: Poly, names: tuple[tuple[Symbol, Index], ...]) -> Poly:
    table = dict(names)
    if value.free.isdisjoint(table):
        return value
    return rewritten(value, lambda atom: None if atom.free.isdisjoint(table) else _replace_atom(atom, table))


def replace(value: Poly, names: Symbols) -> Poly:
    """The polynomial with symbols replaced, in normal form again."""
    return _replaced(value, tuple(sorted(names.items(), key=lambda each: each[0].name)))


def _replace_atom(atom: Atom, names: Symbols) -> Poly:
    return mapped(atom, lambda p: replace(p, names), lambda i: substitute(i, names), lambda c: substitute(c, names))


def mapped(
    atom: Atom, on_poly: Callable[[Poly], Poly], on_index: Callable[[Index], Index], on_cond: Callable[[Cond], Cond]
) -> Poly:
    """The atom with its parts mapped, built again by the constructors that normalise."""
    match atom:
        case Count(index=index):
            return polys.count(on_index(index))
        case Cell(tensor=tensor, at=at):
            return of_atom(cell(tensor, tuple(map(on_index, at))))
        case Exp(of=of):
            return polys.exp(on_poly(of))
        case Base(of=of):
            return on_poly(of)  # the caller raises it to its power
        case Opaque(name="log", args=(of,)):
            return polys.log(on_poly(of))
        case Opaque(name=name, args=args):
            return opaque(name, tuple(map(on_poly, args)))
        case Holds(cond=cond):
            return holds(on_cond(cond))
        case Above(of=of):
            return above(on_poly(of))
        case Prefix(product=product, variable=variable, bound=bound, body=body):
            return prefix(variable, on_index(bound), on_poly(body), product=product)
        case Greatest(variable=variable, low=low, high=high, where=where, body=body):
            return greatest(variable, on_index(low), on_index(high), on_poly(where), on_poly(body))[0]
        case Inhabited(variable=variable, low=low, high=high, where=where):
            return inhabited(variable, on_index(low), on_index(high), on_poly(where))
        case Largest(of=of):
            return polys.largest(map(on_poly, of))


# -- sums and products ---------------------------------------------------------------------------------


def sum_over(variable: Symbol, low: Index, high: Index, body: Poly) -> Poly:
    """The sum of the body over [low, high); low <= high is the caller's condition."""
    low, high = clipped(end(low), end(high))
    return polys.sub(prefix(variable, high, body, product=False), prefix(variable, low, body, product=False))


def product_over(variable: Symbol, low: Index, high: Index, body: Poly) -> Poly:
    """The product of the body over [low, high); low <= high is the caller's condition."""
    low, high = clipped(low, high)
    upper, lower = (prefix(variable, end, body, product=True) for end in (high, low))
    return polys.mul(upper, _inverse(lower))


def _inverse(value: Poly) -> Poly:
    """1 / value, for the elements that a range of a product does not have: an identity of all bodies.

    It is one only if nothing is known of these elements, so none may be 0, or 0 or 1 by a test.
    """
    if value is ZERO or any(isinstance(atom, Holds | Above | Inhabited) for m, _ in value.terms for atom, _ in m):
        raise NoNormalFormError("a product from a lower end at which its body may be 0")
    return polys.power(value, -1)


@lru_cache(maxsize=1 << 13)
def prefix(variable: Symbol, bound: Index, body: Poly, *, product: bool) -> Poly:
    """The sum, or the product, over [0, bound), in normal form."""
    bound = end(bound)
    if bound is algebra.const(0):
        return ONE if product else ZERO
    if (parts := of_maximum(bound)) is not None:  # f(max) + f(min) = f(a) + f(b)
        a, b, both = (prefix(variable, each, body, product=product) for each in (*parts, lesser(*parts)))
        return polys.mul(polys.mul(a, b), _inverse(both)) if product else polys.sub(polys.add(a, b), both)
    if product:
        return _product_prefix(variable, bound, body)
    body, at_ends = telescoped(variable, bound, divided(body, variable, mapped), replace)
    terms = [at_ends]
    for monomial, factor in body.terms:
        inner = tuple(pair for pair in monomial if variable in pair[0].free)
        outer = tuple(pair for pair in monomial if variable not in pair[0].free)
        terms.append(polys.mul(polys.of_monomial(outer, factor), _sum_prefix(variable, bound, inner)))
    return polys.add(*terms)


def _product_prefix(variable: Symbol, bound: Index, body: Poly) -> Poly:
    alone = single(body)
    if alone is None or alone[1] != 1 or not alone[0]:
        if variable not in body.free:
            return _repeated(bound, body)
        return _limited_product(variable, bound, body) or _prefix_atom(variable, bound, body, product=True)
    result = ONE
    for atom, exponent in alone[0]:
        if isinstance(atom, Exp):
            total = prefix(variable, bound, polys.scale(atom.of, exponent), product=False)
            result = polys.mul(result, polys.exp(total))
        elif variable not in atom.free:
            result = polys.mul(result, _repeated(bound, of_atom(atom, exponent)))
        elif exponent.denominator > 1:
            result = polys.mul(result, _prefix_atom(variable, bound, of_atom(atom, exponent), product=True))
        else:
            one = _prefix_atom(variable, bound, atom.of if isinstance(atom, Base) else of_atom(atom), product=True)
            result = polys.mul(result, polys.power(one, exponent))
    return result


def _repeated(bound: Index, body: Poly) -> Poly:
    """The power of what does not vary, with an integer exponent of any sign: that of a sum is a product of powers."""
    number = number_of(body)
    if number is not None and number > 0:
        return polys.exp(polys.mul(polys.count(bound), polys.log(body)))
    terms, offset = linear_terms(bound)
    name = bound_variable(body.depth)
    powers = polys.power(body, offset) if offset >= 0 else _inverse(polys.power(body, -offset))
    for atom, factor in terms:
        powers = polys.mul(powers, polys.power(of_atom(prefix_atom(name, atom, body, product=True)), factor))
    return powers


def _limited_product(variable: Symbol, bound: Index, body: Poly) -> Poly | None:
    """The product of a body that is 1 where a condition bounds the variable, or elsewhere."""
    for cond, rest, without in literals(body, variable):
        limit = limit_of(cond, variable) if without is ONE else None
        if limit is not None:
            ends = lesser(bound, limit[1]), lesser(0, limit[1])
            below, before = (prefix(variable, each, rest, product=True) for each in ends)
            found = polys.mul(below, _inverse(before))
            return found if limit[0] else polys.mul(prefix(variable, bound, rest, product=True), _inverse(found))
    return None


def _sum_prefix(variable: Symbol, bound: Index, inner: Monomial) -> Poly:
    if not inner:
        return polys.count(bound)
    for pair in inner:
        if not isinstance(pair[0], Holds):
            continue
        cond = pair[0].cond
        rest = tuple(other for other in inner if other is not pair)
        body = polys.of_monomial(rest)
        if isinstance(cond, Cmp) and cond.op == "==":
            point = point_of(cond, variable)
            if point is not None:
                here = polys.sub(holds(algebra.lt(point, bound)), holds(algebra.lt(point, 0)))
                return polys.mul(here, replace(body, {variable: point}))
        limit = limit_of(cond, variable)
        if limit is not None:
            below = polys.sub(
                prefix(variable, lesser(bound, limit[1]), body, product=False),
                prefix(variable, lesser(0, limit[1]), body, product=False),
            )
            return below if limit[0] else polys.sub(prefix(variable, bound, body, product=False), below)
        quotients = by_quotients(variable, bound, pair[0], body, prefix, replace)
        if quotients is not None:
            return quotients
    body = polys.of_monomial(inner)
    return (
        exchanged(variable, bound, inner, prefix, replace, shifted=False)
        or of_quotients(variable, bound, body, prefix, replace)
        or _prefix_atom(variable, bound, body, product=False)
    )


def _prefix_atom(variable: Symbol, bound: Index, body: Poly, *, product: bool) -> Poly:
    """The atom after shifting (and turning round) the variable, its bound's constant spelled out."""
    by = 1 if product else stride((body,), variable)
    if by > 1:
        whole = polys.mul(_divided(body, variable, by), holds(is_multiple(variable, by)))
        return prefix(variable, times(bound, by), whole, product=False)
    name = bound_variable(body.depth)
    here = algebra.sym(name)
    sign, offset = shift((body,), variable) or (1, algebra.const(0))
    if sign > 0:
        renamed = replace(body, {variable: algebra.sub(here, offset)})
        ends = moved(bound, offset), offset
    else:
        renamed = replace(body, {variable: algebra.sub(offset, here)})
        ends = algebra.add(offset, 1), turned(bound, algebra.add(offset, 1))
    whole = variable == name  # under another name the body may have other terms
    upper, lower = (_spelled_out(name, end, renamed, product=product, whole=whole) for end in ends)
    return polys.mul(upper, _inverse(lower)) if product else polys.sub(upper, lower)


def _divided(body: Poly, variable: Symbol, by: int) -> Poly:
    """The body with the variable in place of a multiple of it."""
    on_index, on_cond = divided_coordinates(variable, by)

    def inner(of: Poly) -> Poly:
        return rewritten(of, lambda atom: mapped(atom, inner, on_index, on_cond) if variable in atom.free else None)

    return inner(body)


def _spelled_out(name: Symbol, bound: Index, body: Poly, *, product: bool, whole: bool) -> Poly:
    """The prefix at a bound x + c: that at x, and c elements."""
    terms, offset = linear_terms(bound)
    if product and len(body.terms) ** abs(offset) > _EXPANDED:
        return of_atom(prefix_atom(name, bound, body, product=True))
    kept = (offset + _SPELLED_OUT) // (2 * _SPELLED_OUT) * 2 * _SPELLED_OUT if abs(offset) > _SPELLED_OUT else 0
    start, offset = algebra.linear(terms, kept), offset - kept
    result = ONE if product else ZERO
    if start is not algebra.const(0):
        result = _from_start(name, start, body, product=product, whole=whole)
    sign = 1 if offset > 0 else -1
    for step in range(min(0, offset), max(0, offset)):
        one = replace(body, {name: algebra.add(start, step)})
        result = (
            polys.mul(result, one if sign > 0 else _inverse(one))
            if product
            else polys.add(result, polys.scale(one, sign))
        )
    return result


def _from_start(name: Symbol, bound: Index, body: Poly, *, product: bool, whole: bool) -> Poly:
    """The prefix whose variable has its canonical name and shift. Unless `whole`, the body may have other terms now."""
    alone = single(body)
    one = alone is not None and alone[1] == 1
    if product:
        if alone is not None and one and len(alone[0]) > 1 and not whole:
            return _product_prefix(name, bound, body)
    elif not whole and (not one or any(name not in atom.free for atom, _ in body.terms[0][0])):
        return prefix(name, bound, body, product=False)
    elif alone is not None and one:
        found = exchanged(name, bound, alone[0], prefix, replace, shifted=True)
        if found is not None:
            return found
    return of_atom(prefix_atom(name, bound, body, product=product))


# -- maxima --------------------------------------------------------------------------------------------


def _canonical_range(
    variable: Symbol, low: Index, high: Index, parts: tuple[Poly, ...]
) -> tuple[Symbol, Index, Index, tuple[Poly, ...]]:
    """The range and its parts under the canonical name, after shifting the variable."""
    name = bound_variable(max(part.depth for part in parts))
    here = algebra.sym(name)
    sign, offset = shift(parts, variable) or (1, algebra.const(0))
    if sign > 0:
        ends, value = (moved(low, offset), moved(high, offset)), algebra.sub(here, offset)
    else:
        after = algebra.add(offset, 1)
        ends, value = (turned(high, after), turned(low, after)), algebra.sub(offset, here)
    return name, *ends, tuple(replace(part, {variable: value}) for part in parts)


@lru_cache(maxsize=1 << 13)
def inhabited(variable: Symbol, low: Index, high: Index, where: Poly) -> Poly:
    """1 where the range has a point that satisfies the condition, else 0."""
    low, high, where = folded(variable, end(low), end(high), where)
    low, high = unclipped(low, high)
    if where is ZERO:
        return ZERO
    if variable not in where.free:
        return polys.mul(where, holds(algebra.lt(low, high)))
    found = remainder(variable, where)
    if found is not None and found[3] is ONE:
        first = rounded(low, *found[:3])
        if first is not low or rounded(algebra.add(low, 1), *found[:3]) is not algebra.add(low, 1):
            return holds(algebra.lt(algebra.add(first, found[2]), high))
    name, low, high, (where,) = _canonical_range(variable, low, high, (where,))
    return of_atom(inhabited_atom(name, low, high, where))


@lru_cache(maxsize=1 << 13)
def greatest(variable: Symbol, low: Index, high: Index, where: Poly, body: Poly) -> tuple[Poly, Poly]:
    """The greatest body over the range, where it is not empty, and the test that it is not."""
    test = inhabited(variable, low, high, where)
    low, high, where = folded(variable, end(low), end(high), where)
    low, high = clipped(low, high)
    inner = {m: c for m, c in body.terms if any(variable in atom.free for atom, _ in m)}
    outer = polys.add(*(polys.of_monomial(m, c) for m, c in body.terms if m not in inner))
    if variable not in where.free:
        where = ONE  # the test has it
    if not inner or (where is ONE and algebra.sub(high, low) is algebra.const(1)):
        return replace(body, {variable: low}), test
    size = sum((abs(c) for c in inner.values()), Fraction(0))
    moving = polys.scale(polys.sub(body, outer), 1 / size)
    if where is ONE and (joined := _over_iterations(variable, low, high, moving)) is not None:
        return polys.add(outer, polys.scale(joined, size)), test
    by = stride((moving, where), variable)
    if by > 1:
        where = polys.mul(_divided(where, variable, by), holds(is_multiple(variable, by)))
        whole = greatest(variable, algebra.mul(low, by), times(high, by), where, _divided(moving, variable, by))[0]
        return polys.add(outer, polys.scale(whole, size)), test
    name, low, high, (where, moving) = _canonical_range(variable, low, high, (where, moving))
    low, high = (rounded_by(each, name, where) for each in (low, high))
    if (turned_round := _exchanged_maximum(name, low, high, where, moving)) is not None:
        return polys.add(outer, polys.scale(turned_round, size)), test
    form = (name, low, high, where, moving)  # the body may have other terms under another name
    atom = greatest(*form)[0] if name != variable else of_atom(greatest_atom(*form))
    return polys.add(outer, polys.scale(atom, size)), test


def _exchanged_maximum(variable: Symbol, low: Index, high: Index, where: Poly, body: Poly) -> Poly | None:
    """A maximum of maxima whose inner set is free of the outer variable: the order is that of the ranges' forms."""
    found = before(variable, low, high, body)
    if found is None:
        return None
    atom, factor = found
    fresh = unused(atom.free | atom.body.free | atom.where.free | body.free | where.free | symbols(low, high))
    names = {atom.variable: algebra.sym(fresh)}
    rest = polys.sub(body, polys.scale(of_atom(atom), factor))
    inside = polys.add(polys.scale(replace(atom.body, names), factor), rest)
    inner = greatest(variable, low, high, where, inside)[0]
    return greatest(fresh, atom.low, atom.high, replace(atom.where, names), inner)[0]


def _over_iterations(variable: Symbol, low: Index, high: Index, body: Poly) -> Poly | None:
    """The maximum over iterations of maxima over adjoining ranges, as one."""
    alone = single(body)
    if alone is None or alone[1] != 1 or len(alone[0]) != 1 or not isinstance(inner := alone[0][0][0], Greatest):
        return None
    ends = over_iterations(variable, low, high, inner)
    return None if ends is None else greatest(inner.variable, *ends, inner.where, inner.body)[0]
