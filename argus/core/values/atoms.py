"""Polynomials with rational coefficients over interned atoms: the data of the normal form.

A monomial is a sorted tuple of (atom, exponent); exponents are rational numbers. A bound variable is named `#d`; `d`
exceeds the number of each binder inside, so that equal bodies are the same object and substitution captures nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from attrs import field, frozen

from argus.core.index import Cond, Index, Symbol, digest_of
from argus.core.interning import unique
from argus.core.values.ends import whole
from argus.core.walk import symbols

Free = frozenset[Symbol]


class _Kept(Fraction):
    """A rational number whose hash is kept: monomials are keys, and a fraction's own hash takes a modular inverse."""

    __slots__ = ("kept",)
    kept: int

    def __hash__(self) -> int:
        return self.kept

    def __reduce__(self) -> tuple[object, ...]:
        return rational, (Fraction(self.numerator, self.denominator),)


def rational(value: Fraction | int) -> Fraction:
    """The number as a coefficient or an exponent: mostly one object for each, so that equality is soon seen."""
    return value if isinstance(value, _Kept) else _rational(value.numerator, value.denominator)


@lru_cache(maxsize=1 << 14)
def _rational(numerator: int, denominator: int) -> Fraction:
    made = _Kept(numerator, denominator)
    made.kept = Fraction.__hash__(made)
    return made


_ONE = rational(1)


def times(a: Fraction, b: Fraction) -> Fraction:
    """The product of two numbers, most of which are 1."""
    return b if a is _ONE else a if b is _ONE else a * b


@frozen(eq=False, weakref_slot=True)
class Count:
    """An integer that is no sum: a size, a quotient."""

    index: Index
    digest: bytes = field(repr=False)
    free: Free = field(repr=False)
    depth: int = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Cell:
    """An element of a tensor."""

    tensor: str
    at: tuple[Index, ...]
    digest: bytes = field(repr=False)
    free: Free = field(repr=False)
    depth: int = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Exp:
    """exp of one monomial with coefficient 1: its exponent holds the coefficient."""

    of: Poly
    digest: bytes = field(repr=False)
    free: Free = field(repr=False)
    depth: int = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Base:
    """A polynomial as the base of a power that is not expanded."""

    of: Poly
    digest: bytes = field(repr=False)
    free: Free = field(repr=False)
    depth: int = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Opaque:
    """A function without rules, of normalised arguments. `log` of what has no factor exp is one too."""

    name: str
    args: tuple[Poly, ...]
    digest: bytes = field(repr=False)
    free: Free = field(repr=False)
    depth: int = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Holds:
    """1 where the condition on integers holds, else 0."""

    cond: Cond
    digest: bytes = field(repr=False)
    free: Free = field(repr=False)
    depth: int = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Above:
    """1 where the polynomial is above 0, else 0."""

    of: Poly
    digest: bytes = field(repr=False)
    free: Free = field(repr=False)
    depth: int = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Prefix:
    """The sum, or the product, of the body over `variable` in [0, bound).

    For a negative bound it is the negated sum (the inverse product) over [bound, 0): that of [a, b) is a difference
    (a quotient) of two, and those of adjacent ranges telescope.
    """

    product: bool
    variable: Symbol
    bound: Index
    body: Poly
    digest: bytes = field(repr=False)
    free: Free = field(repr=False)
    depth: int = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Greatest:
    """The greatest body over `variable` in [low, high) where `where` (0 or 1) is 1: finite if that set is not empty."""

    variable: Symbol
    low: Index
    high: Index
    where: Poly
    body: Poly
    digest: bytes = field(repr=False)
    free: Free = field(repr=False)
    depth: int = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Inhabited:
    """1 where the set of a `Greatest` with a condition is not empty, else 0."""

    variable: Symbol
    low: Index
    high: Index
    where: Poly
    digest: bytes = field(repr=False)
    free: Free = field(repr=False)
    depth: int = field(repr=False)


@frozen(eq=False, weakref_slot=True)
class Largest:
    """The largest of several polynomials."""

    of: tuple[Poly, ...]
    digest: bytes = field(repr=False)
    free: Free = field(repr=False)
    depth: int = field(repr=False)


Atom = Count | Cell | Exp | Base | Opaque | Holds | Above | Prefix | Greatest | Inhabited | Largest
Monomial = tuple[tuple[Atom, Fraction], ...]
UNIT: Monomial = ()


@frozen(eq=False, weakref_slot=True)
class Poly:
    """A sum of `coefficient * monomial`: monomials distinct and sorted, coefficients not 0."""

    terms: tuple[tuple[Monomial, Fraction], ...]
    digest: bytes = field(repr=False)
    free: Free = field(repr=False)
    depth: int = field(repr=False)


class NoNormalFormError(Exception):
    """The expression has no normal form, or one that is too large: nothing is decided. The message says why."""


_LIMIT = 2000


def inner(atom: Atom) -> tuple[Poly, ...]:
    """The polynomials in an atom."""
    match atom:
        case Exp(of=of) | Base(of=of) | Above(of=of):
            return (of,)
        case Opaque(args=of) | Largest(of=of):
            return of
        case Prefix(body=body):
            return (body,)
        case Greatest(where=where, body=body):
            return (where, body)
        case Inhabited(where=where):
            return (where,)
        case Count() | Cell() | Holds():
            return ()


def integers(atom: Atom) -> tuple[Index | Cond, ...]:
    """The integers and conditions on integers in an atom, without those of its polynomials."""
    match atom:
        case Count(index=index):
            return (index,)
        case Cell(at=at):
            return at
        case Holds(cond=cond):
            return (cond,)
        case Prefix(bound=bound):
            return (bound,)
        case Greatest(low=low, high=high) | Inhabited(low=low, high=high):
            return low, high
        case Exp() | Base() | Above() | Opaque() | Largest():
            return ()


def order(atom: Atom) -> bytes:
    """The canonical order of atoms."""
    return atom.digest


def sorted_monomial(powers: Iterable[tuple[Atom, Fraction]]) -> Monomial:
    """The monomial with these powers, of distinct atoms; those with exponent 0 are left out."""
    return tuple(sorted(((atom, rational(power)) for atom, power in powers if power), key=_digest_of_atom))


def _digest_of_atom(power: tuple[Atom, Fraction]) -> bytes:
    return power[0].digest


def monomial_key(monomial: Monomial) -> tuple[tuple[bytes, Fraction], ...]:
    """The canonical order of monomials."""
    return tuple((atom.digest, power) for atom, power in monomial)


def poly(terms: dict[Monomial, Fraction]) -> Poly:
    """The polynomial with these terms."""
    kept = [(monomial, rational(factor)) for monomial, factor in terms.items() if factor]
    if len(kept) > _LIMIT:
        raise NoNormalFormError("the normal form is too large")
    if len(kept) > 1:
        kept.sort(key=lambda each: monomial_key(each[0]))
    return _poly(tuple(kept))


@lru_cache(maxsize=1 << 15)
def _poly(terms: tuple[tuple[Monomial, Fraction], ...]) -> Poly:
    atoms = [atom for monomial, _ in terms for atom, _ in monomial]
    digest = digest_of(
        "poly", *(part for m, c in terms for part in (str(c), *(x for k in m for x in (k[0].digest, str(k[1])))))
    )
    free = frozenset[Symbol]().union(*(atom.free for atom in atoms))
    return unique(Poly, terms, digest, free, max((atom.depth for atom in atoms), default=0))


def constant(value: Fraction | int) -> Poly:
    """A number."""
    return poly({UNIT: rational(value)})


ZERO, ONE = constant(0), constant(1)


def of_atom(atom: Atom, power: Fraction | int = 1) -> Poly:
    """A power of an atom."""
    return poly({((atom, rational(power)),): _ONE})


def number_of(value: Poly) -> Fraction | None:
    """The number that the polynomial is, None if it is none."""
    if not value.terms:
        return Fraction(0)
    return value.terms[0][1] if len(value.terms) == 1 and not value.terms[0][0] else None


def single(value: Poly) -> tuple[Monomial, Fraction] | None:
    """The only term, None if there are others or none."""
    return value.terms[0] if len(value.terms) == 1 else None


def _in_indices(*parts: Index | Cond) -> Free:
    return symbols(*parts)


def cell(tensor: str, at: tuple[Index, ...]) -> Cell:
    at = tuple(map(whole, at))
    return unique(Cell, tensor, at, digest_of("cell", tensor, *(x.digest for x in at)), _in_indices(*at), 0)


def count_atom(index: Index) -> Count:
    return unique(Count, index, digest_of("count", index.digest), _in_indices(index), 0)


def holds_atom(cond: Cond) -> Holds:
    return unique(Holds, cond, digest_of("holds", cond.digest), _in_indices(cond), 0)


def above_atom(of: Poly) -> Above:
    return unique(Above, of, digest_of("above", of.digest), of.free, of.depth)


def exp_atom(of: Poly) -> Exp:
    return unique(Exp, of, digest_of("exp", of.digest), of.free, of.depth)


def base_atom(of: Poly) -> Base:
    return unique(Base, of, digest_of("base", of.digest), of.free, of.depth)


def opaque_atom(name: str, args: tuple[Poly, ...]) -> Opaque:
    free = frozenset[Symbol]().union(*(each.free for each in args))
    depth = max((each.depth for each in args), default=0)
    return unique(Opaque, name, args, digest_of("opaque", name, *(each.digest for each in args)), free, depth)


def largest_atom(of: tuple[Poly, ...]) -> Largest:
    free = frozenset[Symbol]().union(*(each.free for each in of))
    return unique(
        Largest, of, digest_of("largest", *(each.digest for each in of)), free, max(each.depth for each in of)
    )


def bound_variable(depth: int) -> Symbol:
    """The name of a bound variable whose body has binders up to `depth`."""
    return Symbol(f"#{depth + 1}", "fresh")


def prefix_atom(variable: Symbol, bound: Index, body: Poly, *, product: bool) -> Prefix:
    """Of a body whose bound variable has its canonical name."""
    digest = digest_of("prefix", product, variable.name, bound.digest, body.digest)
    free = (body.free - {variable}) | _in_indices(bound)
    return unique(Prefix, product, variable, bound, body, digest, free, body.depth + 1)


def greatest_atom(variable: Symbol, low: Index, high: Index, where: Poly, body: Poly) -> Greatest:
    """Of a body and a condition whose bound variable has its canonical name."""
    digest = digest_of("greatest", variable.name, low.digest, high.digest, where.digest, body.digest)
    free = ((body.free | where.free) - {variable}) | _in_indices(low, high)
    return unique(Greatest, variable, low, high, where, body, digest, free, max(body.depth, where.depth) + 1)


def inhabited_atom(variable: Symbol, low: Index, high: Index, where: Poly) -> Inhabited:
    """Of a condition whose bound variable has its canonical name."""
    digest = digest_of("inhabited", variable.name, low.digest, high.digest, where.digest)
    free = (where.free - {variable}) | _in_indices(low, high)
    return unique(Inhabited, variable, low, high, where, digest, free, where.depth + 1)
