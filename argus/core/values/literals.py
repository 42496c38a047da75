"""Tests in polynomials: the conditions under which one is another, and the remainders that one asks of a variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.values import polynomial as polys
from argus.core.values.atoms import ONE, ZERO, Atom, Holds, Poly, constant, of_atom, poly
from argus.core.values.ends import greater, lesser, residue, rounded
from argus.core.values.places import limit
from argus.core.walk import symbols


def rewritten(value: Poly, visit: Callable[[Atom], Poly | None]) -> Poly:
    """The polynomial with each atom replaced by its visit's result, where that is not None."""
    found = {atom: visit(atom) for monomial, _ in value.terms for atom, _ in monomial}
    if all(each is None for each in found.values()):
        return value
    same = {monomial: factor for monomial, factor in value.terms if all(found[atom] is None for atom, _ in monomial)}
    parts: list[Poly] = [poly(same)] if same else []
    for monomial, factor in value.terms:
        if monomial in same:
            continue
        term = constant(factor)
        for atom, power in monomial:
            by = found[atom]
            term = polys.mul(term, of_atom(atom, power) if by is None else polys.power(by, power))
        parts.append(term)
    return polys.add(*parts)


def literals(of: Poly, variable: Symbol) -> Iterator[tuple[Cond, Poly, Poly]]:
    """(condition on the variable, the polynomial where it holds, and where not), for its tests and their negations."""
    for atom in sorted({each for m, _ in of.terms for each, _ in m}, key=lambda each: each.digest):
        if isinstance(atom, Holds) and variable in atom.free:
            values = [rewritten(of, lambda each, n=n, a=atom: n if each is a else None) for n in (ONE, ZERO)]
            yield atom.cond, values[0], values[1]
            yield algebra.negate(atom.cond), values[1], values[0]


def certain(of: Poly) -> Iterator[Cond]:
    """The conditions that hold wherever the polynomial is not 0."""
    for atom in {each for m, _ in of.terms for each, _ in m if isinstance(each, Holds)}:
        for value, cond in ((ZERO, atom.cond), (ONE, algebra.negate(atom.cond))):
            if rewritten(of, lambda each, n=value, a=atom: n if each is a else None) is ZERO:
                yield cond


def remainder(variable: Symbol, where: Poly) -> tuple[Index, int, int, Poly] | None:
    """(t, d, r, rest), of a condition that (variable + t) % d == r and the rest holds."""
    tests = {atom: residue(atom.cond) for m, _ in where.terms for atom, _ in m if isinstance(atom, Holds)}
    known = {atom: found for atom, found in tests.items() if found is not None and variable in atom.free}
    if len({found[:2] for found in known.values()}) != 1:
        return None
    ((of, divisor),) = {found[:2] for found in known.values()}
    shift = algebra.sub(of, algebra.sym(variable))
    ways: list[tuple[int, Poly]] = []
    for number in range(divisor):
        values = {atom: ONE if found[2] == number else ZERO for atom, found in known.items()}
        way = rewritten(where, lambda atom, known=values: known.get(atom) if isinstance(atom, Holds) else None)
        ways += [] if way is ZERO else [(number, way)]
    return (shift, divisor, *ways[0]) if len(ways) == 1 and variable not in symbols(shift) else None


def rounded_by(index: Index, variable: Symbol, where: Poly) -> Index:
    """The end of a range, of numbers with one remainder."""
    found = remainder(variable, where)
    return index if found is None else rounded(index, *found[:3])


def folded(variable: Symbol, low: Index, high: Index, where: Poly) -> tuple[Index, Index, Poly]:
    """The range and the condition, with what bounds the variable moved into the range."""
    for cond, rest, without in literals(where, variable):
        found = limit(cond, variable) if without is ZERO else None
        if found is not None:
            ends = (low, lesser(high, found[1])) if found[0] else (greater(low, found[1]), high)
            return folded(variable, *ends, rest)
    return low, high, where
