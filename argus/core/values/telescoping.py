"""Sums of differences of neighbours: what is left is at both ends.

The sum of g(v + 1) - g(v) over [0, b) is g(b) - g(0), for a negative b too (`Prefix`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Index, Symbol
from argus.core.values import polynomial as polys
from argus.core.values.atoms import ONE, ZERO, Monomial, Poly
from argus.core.values.places import shift

Replace = Callable[[Poly, Mapping[Symbol, Index]], Poly]
_FARTHEST = 16
"""How far apart neighbours are, at most."""


def telescoped(variable: Symbol, bound: Index, body: Poly, replace: Replace) -> tuple[Poly, Poly]:
    """(rest, at the ends): the sum of the body over [0, bound) is that of the rest and what is left at the ends."""
    if len(body.terms) < 2:
        return body, ZERO
    groups: dict[tuple[Poly, Poly], list[tuple[int, Fraction, Monomial]]] = {}
    for monomial, factor in body.terms:
        inner = polys.of_monomial(tuple(pair for pair in monomial if variable in pair[0].free))
        outer = polys.of_monomial(tuple(pair for pair in monomial if variable not in pair[0].free))
        if inner is not ONE:
            one, by = _unshifted(variable, inner, replace)
            groups.setdefault((one, outer), []).append((by, factor, monomial))
    rest, at_ends = [body], list[Poly]()
    for (one, outer), members in groups.items():
        first = min(by for by, _, _ in members)
        if len(members) == 1 or sum(c for _, c, _ in members) or max(by for by, _, _ in members) > first + _FARTHEST:
            continue
        rest += [polys.of_monomial(monomial, -factor) for _, factor, monomial in members]
        for by, factor, _ in members:
            for step in range(first, by):
                ends = (replace(one, {_any(variable): algebra.add(end, step)}) for end in (bound, algebra.const(0)))
                at_ends.append(polys.scale(polys.mul(outer, polys.sub(*ends)), factor))
    return polys.add(*rest), polys.add(*at_ends)


def _unshifted(variable: Symbol, of: Poly, replace: Replace) -> tuple[Poly, int]:
    """(f, n) with f(variable + n) as the polynomial: f is the same for all of its shifts by numbers.

    f is of a variable without a range: by that of the variable, tests of a shifted one would be decided.
    """
    found = shift((of,), variable)
    by = 0 if found is None else found[0] * linear_terms(found[1])[1]
    return replace(of, {variable: algebra.sub(algebra.sym(_any(variable)), by)}), by


def _any(variable: Symbol) -> Symbol:
    """The variable without a range."""
    return Symbol(variable.name, variable.kind)
