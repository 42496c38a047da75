"""Where a bound variable occurs in the atoms of its body, and how it may be shifted or bounded."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Bin, Cmp, Cond, Const, Index, Sym, Symbol
from argus.core.values.atoms import (
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
    Opaque,
    Poly,
    Prefix,
)
from argus.core.walk import substitute, symbols


def limit(cond: Cond, variable: Symbol) -> tuple[bool, Index] | None:
    """(True, e) for variable < e, (False, e) for variable >= e; None for other conditions."""
    if not isinstance(cond, Cmp) or cond.op != "<=":
        return None
    terms, offset = linear_terms(algebra.sub(cond.right, cond.left))
    own = sum(factor for atom, factor in terms if isinstance(atom, Sym) and atom.symbol == variable)
    others = [(atom, factor) for atom, factor in terms if not (isinstance(atom, Sym) and atom.symbol == variable)]
    rest = algebra.linear(others, offset)
    if own == 0 or variable in symbols(rest):
        return None
    quotient = algebra.floordiv(rest, abs(own))  # own * variable + rest >= 0
    return (True, algebra.add(quotient, 1)) if own < 0 else (False, algebra.neg(quotient))


def shift(parts: tuple[Poly, ...], variable: Symbol) -> tuple[int, Index] | None:
    """(sign, e): the first coordinate that names the variable is sign * variable + e. None if there is none.

    The choice does not depend on how the variable is shifted: by tensor and axis, then the greatest constant.
    """
    best: tuple[str, int, int] | None = None
    found: tuple[int, Index] | None = None
    for label, index in _places(parts, variable):
        for factor, rest in linear_in(index, variable):
            step = _quotient(rest, factor)
            if step is None:
                continue
            # factor * variable + rest = factor * (variable + step); factors -1, -2, .. turn the variable round
            number = factor.value if isinstance(factor, Const) else 1
            offset = step if number > 0 else algebra.neg(step)
            key = (label, abs(number), -linear_terms(offset)[1])
            if best is None or key < best:
                best, found = key, (1 if number > 0 else -1, offset)
    return found


def _quotient(rest: Index, factor: Index) -> Index | None:
    """e with factor * e == rest, where there is a simple one."""
    if isinstance(factor, Const):
        sign = 1 if factor.value > 0 else -1
        step = algebra.floordiv(algebra.mul(rest, sign), abs(factor.value))
        return step if algebra.mul(step, factor) is rest else None
    (_, own), (_, other) = ([*linear_terms(each)[0], (None, 0)][0] for each in (factor, rest))
    times = other // own if own else 0
    return algebra.const(times) if algebra.mul(factor, times) is rest else None


def linear_in(index: Index, variable: Symbol) -> Iterator[tuple[Index, Index]]:
    """(factor, rest) of each form factor * variable + rest within the index, factor and rest free of the variable."""
    if variable not in symbols(index):
        return
    rest = substitute(index, {variable: algebra.const(0)})
    factor = algebra.sub(substitute(index, {variable: algebra.const(1)}), rest)
    if factor is not algebra.const(0) and algebra.add(algebra.mul(factor, algebra.sym(variable)), rest) is index:
        yield factor, rest
    for atom, _ in linear_terms(index)[0]:
        for part in _operands(atom):
            yield from linear_in(part, variable)


def _operands(index: Index) -> tuple[Index, ...]:
    return (index.left, index.right) if isinstance(index, Bin) and index.op in ("min", "max") else ()


def _places(parts: tuple[Poly, ...], variable: Symbol) -> Iterator[tuple[str, Index]]:
    """The index expressions that mention the variable, each with a label that no shift changes."""
    for part in parts:
        for monomial, _ in part.terms:
            for atom, _ in monomial:
                if variable in atom.free:
                    yield from _places_of(atom, variable)


def _places_of(atom: Atom, variable: Symbol) -> Iterator[tuple[str, Index]]:
    match atom:
        case Cell(tensor=tensor, at=at):
            yield from ((f"a {tensor} {axis}", index) for axis, index in enumerate(at) if variable in symbols(index))
        case Count(index=index):
            yield "d", index
        case Exp(of=of) | Base(of=of) | Above(of=of):
            yield from _places((of,), variable)
        case Opaque(args=of) | Largest(of=of):
            yield from _places(of, variable)
        case Prefix(bound=bound, body=body):
            yield "b", bound
            yield from _places((body,), variable)
        case Greatest(low=low, high=high, where=where, body=body):
            yield from (("b", low), ("b", high))
            yield from _places((body, where), variable)
        case Inhabited(low=low, high=high, where=where):
            yield from (("b", low), ("b", high))
            yield from _places((where,), variable)
        case Holds(cond=cond):
            if isinstance(cond, Cmp):
                yield "c", algebra.sub(cond.left, cond.right)


def point_of(cond: Cmp, variable: Symbol) -> Index | None:
    """e, if the equation says variable == e."""
    for factor, rest in linear_in(algebra.sub(cond.left, cond.right), variable):
        if isinstance(factor, Const) and abs(factor.value) == 1:
            point = algebra.mul(rest, -factor.value)
            return point if algebra.eq(algebra.sym(variable), point) is cond else None
    return None


def moved(index: Index, by: Index) -> Index:
    """index + by, into the operands of a minimum or a maximum."""
    if isinstance(index, Bin) and index.op in ("min", "max"):
        operands = moved(index.left, by), moved(index.right, by)
        return algebra.minimum(*operands) if index.op == "min" else algebra.maximum(*operands)
    return algebra.add(index, by)


def turned(index: Index, by: Index) -> Index:
    """by - index, into the operands of a minimum or a maximum."""
    if isinstance(index, Bin) and index.op in ("min", "max"):
        operands = turned(index.left, by), turned(index.right, by)
        return algebra.maximum(*operands) if index.op == "min" else algebra.minimum(*operands)
    return algebra.sub(by, index)
