"""Where a bound variable occurs in the atoms of its body, and how it may be shifted or bounded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Bin, Cmp, Cond, Const, Index, Read, Sym, Symbol
from argus.core.values.atoms import (
    Above,
    Atom,
    Base,
    Cell,
    Count,
    Exp,
    Free,
    Greatest,
    Holds,
    Inhabited,
    Largest,
    Opaque,
    Poly,
    Prefix,
)
from argus.core.values.ends import factors_of, greater, lesser
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
    if own < 0:  # own * variable + rest >= 0
        return True, algebra.add(algebra.floordiv(rest, -own), 1)
    return False, algebra.ceil_div(algebra.neg(rest), own)


def shift(parts: tuple[Poly, ...], variable: Symbol) -> tuple[int, Index] | None:
    """(sign, e): the first coordinate that names the variable is sign * variable + e. None if there is none.

    The choice does not depend on how the variable is shifted: by tensor and axis, then the greatest constant, then the
    greatest factor of the first term that differs.
    """
    best: tuple[bool, str, int, int] | None = None
    found: tuple[int, Index] | None = None
    for label, index in _places(parts, variable):
        for factor, rest in linear_in(index, variable):
            divided = _quotient(rest, factor)
            if divided is None:
                continue
            # factor * variable + rest = factor * (variable + step) + r; factors -1, -2, .. turn the variable round
            step, exact = divided
            number = factor.value if isinstance(factor, Const) else 1
            offset = step if number > 0 else algebra.neg(step)
            key = (not exact, label, abs(number), -linear_terms(offset)[1])
            sign = 1 if number > 0 else -1
            if (
                best is None
                or key < best
                or (key == best and found and found[0] == sign and _is_above(offset, found[1]))
            ):
                best, found = key, (sign, offset)
    return found


def _is_above(one: Index, other: Index) -> bool:
    """An order of expressions that adding the same to both does not change."""
    terms, _ = linear_terms(algebra.sub(one, other))
    return bool(terms) and min(terms, key=lambda each: each[0].digest)[1] > 0


def _quotient(rest: Index, factor: Index) -> tuple[Index, bool] | None:
    """(e, whether factor * e is the rest): what the factor divides of it, if that is simple to see."""
    terms, offset = linear_terms(rest)
    if isinstance(factor, Const):
        size, sign = abs(factor.value), 1 if factor.value > 0 else -1  # what is left of each term is not negative
        step = algebra.linear([(atom, sign * (each // size)) for atom, each in terms], sign * (offset // size))
        return step, algebra.mul(step, factor) is rest
    ((whole, own), *more), constant = linear_terms(factor)
    if more or constant:
        (_, other) = [*terms, (None, 0)][0]
        times = other // own
        return (algebra.const(times), True) if algebra.mul(factor, times) is rest else None
    parts = [(other, each) for atom, each in terms if (other := _divided(atom, whole)) is not None]
    sign = 1 if own > 0 else -1
    step = algebra.linear([(other, sign * (each // abs(own))) for other, each in parts], 0)
    return step, algebra.mul(step, factor) is rest


def _divided(atom: Index, by: Index) -> Index | None:
    """The other factors of a product that has all those of `by`."""
    factors = list(factors_of(atom))
    for each in factors_of(by):
        if each not in factors:
            return None
        factors.remove(each)
    product = algebra.const(1)
    for each in factors:
        product = algebra.mul(product, each)
    return product


def linear_in(index: Index, variable: Symbol) -> Iterator[tuple[Index, Index]]:
    """(factor, rest) of each form factor * variable + rest within the index, factor and rest free of the variable."""
    if variable not in symbols(index):
        return
    rest = substitute(index, {variable: algebra.const(0)})
    factor = algebra.sub(substitute(index, {variable: algebra.const(1)}), rest)
    if factor is not algebra.const(0) and algebra.add(algebra.mul(factor, algebra.sym(variable)), rest) is index:
        yield factor, rest
    for atom, number in linear_terms(index)[0]:
        for part in _operands(atom):
            yield from linear_in(part, variable)
        if number == 1 and isinstance(atom, Bin) and atom.op == "//" and isinstance(atom.right, Const):
            # e + x // d is (x + d e) // d
            rest = algebra.mul(algebra.sub(index, atom), atom.right)
            yield from linear_in(algebra.add(atom.left, rest), variable)


def _operands(index: Index) -> tuple[Index, ...]:
    if isinstance(index, Read):
        return index.at
    return (index.left, index.right) if isinstance(index, Bin) and index.op in ("min", "max") else ()


def _places(parts: tuple[Poly, ...], variable: Symbol, *, every: bool = False) -> Iterator[tuple[str, Index]]:
    """The index expressions that mention the variable, each with a label that no shift changes.

    Not those with an inner bound variable, which has no value outside of its range, unless every one is wanted.
    """
    for part in parts:
        for monomial, _ in part.terms:
            for atom, _ in monomial:
                if variable in atom.free:
                    yield from _places_of(atom, variable, every=every)


def coordinates(parts: tuple[Poly, ...], variable: Symbol) -> Iterator[Index]:
    """Every index expression that mentions the variable."""
    return (index for _, index in _places(parts, variable, every=True))


def _places_of(atom: Atom, variable: Symbol, *, every: bool) -> Iterator[tuple[str, Index]]:
    match atom:
        case Cell(tensor=tensor, at=at):
            yield from ((f"a {tensor} {axis}", index) for axis, index in enumerate(at) if variable in symbols(index))
        case Count(index=index):
            yield "d", index
        case Exp(of=of) | Base(of=of) | Above(of=of):
            yield from _places((of,), variable, every=every)
        case Opaque(args=of) | Largest(of=of):
            yield from _places(of, variable, every=every)
        case Prefix(variable=own, bound=bound, body=body):
            yield "b", bound
            yield from _inner((body,), variable, own, every=every)
        case Greatest(variable=own, low=low, high=high, where=where, body=body):
            yield from (("b", low), ("b", high))
            yield from _inner((body, where), variable, own, every=every)
        case Inhabited(variable=own, low=low, high=high, where=where):
            yield from (("b", low), ("b", high))
            yield from _inner((where,), variable, own, every=every)
        case Holds(cond=cond):
            yield "c", algebra.sub(cond.left, cond.right) if isinstance(cond, Cmp) else algebra.sym(variable)


def _inner(parts: tuple[Poly, ...], variable: Symbol, bound: Symbol, *, every: bool) -> Iterator[tuple[str, Index]]:
    places = _places(parts, variable, every=every)
    return ((label, index) for label, index in places if every or bound not in symbols(index))


def share_a_place(body: Poly, a: Symbol, b: Symbol) -> bool:
    """Whether an index expression of the body mentions both variables."""
    return any(b in symbols(index) for _, index in _places((body,), a))


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
        return lesser(*operands) if index.op == "min" else greater(*operands)
    return algebra.add(index, by)


def turned(index: Index, by: Index) -> Index:
    """by - index, into the operands of a minimum or a maximum."""
    if isinstance(index, Bin) and index.op in ("min", "max"):
        operands = turned(index.left, by), turned(index.right, by)
        return greater(*operands) if index.op == "min" else lesser(*operands)
    return algebra.sub(by, index)


def unused(names: Free) -> Symbol:
    """A variable that none of these is."""
    return next(each for number in count() if (each := Symbol(f"#'{number}", "fresh")) not in names)
