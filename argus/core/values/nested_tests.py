"""Conditions on integers within functions: a function of a choice is the choice of its values.

f([c] x) is [c] f(x) + [not c] f(0), for every f. It is written so where it matters: in the body of a sum, whose range
the condition then bounds, and where a difference has to be 0 in both cases.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from argus.core import algebra
from argus.core.index import Bin, Cond, Index, Symbol
from argus.core.values import polynomial as polys
from argus.core.values.atoms import ONE, Atom, Greatest, Holds, Inhabited, Poly, Prefix, inner, integers
from argus.core.values.ends import orders_of
from argus.core.values.literals import rewritten
from argus.core.values.truth import holds
from argus.core.walk import symbols, topological

Mapped = Callable[[Atom, Callable[[Poly], Poly], Callable[[Index], Index], Callable[[Cond], Cond]], Poly]
_FEW = 3
"""Conditions that a body is divided by, at most: each doubles it."""


@lru_cache(maxsize=1 << 13)
def tests(of: Poly) -> frozenset[Cond]:
    """The conditions in the polynomial, at any depth, without those on variables that are bound within it."""
    found = {atom.cond for monomial, _ in of.terms for atom, _ in monomial if isinstance(atom, Holds)}
    return nested(of) | found


@lru_cache(maxsize=1 << 13)
def nested(of: Poly) -> frozenset[Cond]:
    """Those within its atoms."""
    found = set[Cond]()
    for monomial, _ in of.terms:
        for atom, _ in monomial:
            found |= unbound(frozenset[Cond]().union(*map(tests, inner(atom))), atom)
    return frozenset(found)


@lru_cache(maxsize=1 << 13)
def orders(of: Poly) -> frozenset[Cond]:
    """Of each minimum and maximum of integers in it, which of its operands the others decide, likewise."""
    found = set[Cond]()
    for monomial, _ in of.terms:
        for atom, _ in monomial:
            here = (node for part in integers(atom) for node in topological((part,)) if isinstance(node, Bin))
            found.update(*map(orders_of, here))
            below = frozenset[Cond]().union(*map(orders, inner(atom)))
            found |= unbound(below, atom)
    return frozenset(found)


def unbound(conds: frozenset[Cond], atom: Atom) -> frozenset[Cond]:
    """Those that are not on the variable that an atom binds."""
    bound = atom.variable if isinstance(atom, Prefix | Greatest | Inhabited) else None
    return conds if bound is None else frozenset(cond for cond in conds if bound not in symbols(cond))


def divided(of: Poly, variable: Symbol, mapped: Mapped) -> Poly:
    """The polynomial with the conditions on the variable as factors, if there are few."""
    within = sorted((cond for cond in nested(of) if variable in symbols(cond)), key=lambda cond: cond.digest)
    if not 0 < len(within) <= _FEW:
        return of
    for cond in within:
        here = holds(cond)
        true, false = (where(of, cond, mapped, true=true) for true in (True, False))
        of = polys.add(polys.mul(here, true), polys.mul(polys.sub(ONE, here), false))
    return of


def where(of: Poly, known: Cond, mapped: Mapped, *, true: bool) -> Poly:
    """The polynomial where the condition holds, or does not."""

    def on_cond(cond: Cond) -> Cond:
        return cond if cond is not known else algebra.TRUE if true else algebra.FALSE

    def factor(atom: Atom) -> Poly | None:
        return holds(on_cond(known)) if isinstance(atom, Holds) and atom.cond is known else None

    @cache
    def visit(atom: Atom) -> Poly | None:
        return mapped(atom, on_poly, lambda index: index, on_cond) if _mentions(atom, known) else None

    @cache
    def on_poly(poly: Poly) -> Poly:
        return rewritten(rewritten(poly, factor), visit)  # what is multiplied by 0 may have no value

    return on_poly(of)


def _mentions(atom: Atom, cond: Cond) -> bool:
    return any(cond in tests(each) for each in inner(atom))
