"""Constructors of integer arithmetic on index expressions, in normal form."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import gcd
from typing import cast

from argus.core import interval
from argus.core.index import (
    Bin,
    BinOp,
    Const,
    Coord,
    Held,
    Index,
    Read,
    Sum,
    Sym,
    Symbol,
    digest_of,
)
from argus.core.interning import intern, lookup

IndexLike = Index | int
_DISTRIBUTE_LIMIT = 64


def const(value: int) -> Const:
    """A constant."""
    key = ("const", value)
    found = lookup(key)
    if found is not None:
        return cast(Const, found)
    return intern(key, Const(value, digest_of("const", value), (value, value)))


def sym(symbol: Symbol) -> Sym:
    """The value of a symbol."""
    key = ("sym", symbol)
    found = lookup(key)
    if found is not None:
        return cast(Sym, found)
    digest = digest_of("sym", symbol.name, symbol.kind, symbol.low, symbol.high)
    return intern(key, Sym(symbol, digest, (symbol.low, symbol.high)))


def coord(axis: int) -> Coord:
    """Coordinate `axis` of the current element."""
    key = ("coord", axis)
    found = lookup(key)
    if found is not None:
        return cast(Coord, found)
    return intern(key, Coord(axis, digest_of("coord", axis), interval.ANY))


def index(value: IndexLike) -> Index:
    """The expression itself, or the constant of an int."""
    return const(value) if isinstance(value, int) else value


def _order(atom: Index) -> tuple[int, str, bytes]:
    match atom:
        case Sym(symbol=symbol):
            return 0, symbol.name, atom.digest
        case Coord(axis=axis):
            return 1, f"{axis:04}", atom.digest
        case _:
            return 2, "", atom.digest


def linear_terms(expression: Index) -> tuple[tuple[tuple[Index, int], ...], int]:
    """The expression as a linear form over its atoms: ((atom, coefficient), ...) and the constant."""
    match expression:
        case Const(value=value):
            return (), value
        case Sum(terms=terms, constant=constant):
            return terms, constant
        case _:
            return ((expression, 1),), 0


def linear(terms: Iterable[tuple[Index, int]], constant: int) -> Index:
    """`constant + sum(coefficient * term)`, where terms may be any expressions."""
    return _linear(tuple(terms), constant)


@lru_cache(maxsize=1 << 16)
def _linear(terms: tuple[tuple[Index, int], ...], constant: int) -> Index:
    total = constant
    merged: dict[Index, int] = {}
    for term, coefficient in terms:
        parts, offset = linear_terms(term)
        total += coefficient * offset
        for atom, factor in parts:
            merged[atom] = merged.get(atom, 0) + coefficient * factor
    kept = [(atom, factor) for atom, factor in merged.items() if factor != 0]
    if not kept:
        return const(total)
    if len(kept) == 1 and kept[0][1] == 1 and total == 0:
        return kept[0][0]
    ordered = tuple(sorted(kept, key=lambda pair: _order(pair[0])))
    key = ("sum", ordered, total)
    found = lookup(key)
    if found is not None:
        return cast(Sum, found)
    digest = digest_of("sum", total, *(part for atom, factor in ordered for part in (atom.digest, factor)))
    range_ = (total, total)
    for atom, factor in ordered:
        range_ = interval.add(range_, interval.scale(atom.range, factor))
    return intern(key, Sum(ordered, total, digest, range_, tuple(atom for atom, _ in ordered)))


def add(*parts: IndexLike) -> Index:
    """The sum of the parts."""
    return _linear(tuple([(index(part), 1) for part in parts]), 0)


def sub(a: IndexLike, b: IndexLike) -> Index:
    """`a - b`."""
    return _linear(((index(a), 1), (index(b), -1)), 0)


def neg(a: IndexLike) -> Index:
    """`-a`."""
    return linear([(index(a), -1)], 0)


def _bin(op: BinOp, left: Index, right: Index) -> Index:
    key = ("bin", op, left, right)
    found = lookup(key)
    if found is not None:
        return cast(Bin, found)
    range_ = interval.of_bin(op, left.range, right.range)
    if range_[0] is not None and range_[0] == range_[1]:
        return const(range_[0])
    return intern(key, Bin(op, left, right, digest_of("bin", op, left.digest, right.digest), range_, (left, right)))


def _sorted_pair(a: Index, b: Index) -> tuple[Index, Index]:
    return (a, b) if _order(a) <= _order(b) else (b, a)


def _factors(atom: Index) -> list[Index]:
    factors: list[Index] = []
    while isinstance(atom, Bin) and atom.op == "*":
        factors.append(atom.right)
        atom = atom.left
    return [*factors, atom]


def _product_of_atoms(a: Index, b: Index) -> Index:
    factors = sorted(_factors(a) + _factors(b), key=_order)
    product = factors[0]
    for factor in factors[1:]:
        product = _bin("*", product, factor)
    return product


def mul(a: IndexLike, b: IndexLike) -> Index:
    """`a * b`, expanded, so that equal polynomials have one normal form (up to a limit on the number of terms)."""
    left, right = index(a), index(b)
    left_terms, left_constant = linear_terms(left)
    right_terms, right_constant = linear_terms(right)
    if (len(left_terms) + 1) * (len(right_terms) + 1) > _DISTRIBUTE_LIMIT and left_terms and right_terms:
        return _bin("*", *_sorted_pair(left, right))
    terms: list[tuple[Index, int]] = [(atom, factor * right_constant) for atom, factor in left_terms]
    terms += [(atom, factor * left_constant) for atom, factor in right_terms]
    terms += [(_product_of_atoms(x, y), fx * fy) for x, fx in left_terms for y, fy in right_terms]
    return linear(terms, left_constant * right_constant)


def _split(expression: Index, divisor: int) -> tuple[Index, Index]:
    """`(q, r)` with `expression == divisor * q + r`; q takes whole multiples out of each coefficient."""
    terms, constant = linear_terms(expression)
    multiples = [(atom, abs(factor) // divisor * (1 if factor > 0 else -1)) for atom, factor in terms]
    quotient = linear(multiples, constant // divisor)
    return quotient, linear([(expression, 1), (quotient, -divisor)], 0)


def _residue(expression: Index, divisor: int) -> Index:
    """The expression with every coefficient reduced modulo the divisor."""
    terms, constant = linear_terms(expression)
    return linear([(atom, factor % divisor) for atom, factor in terms], constant % divisor)


def floordiv(a: IndexLike, b: IndexLike) -> Index:
    """`a // b`, floor division; `b` must not be zero."""
    left, right = index(a), index(b)
    if not isinstance(right, Const):
        return (
            const(1) if left is right and right.range[0] is not None and right.range[0] > 0 else _bin("//", left, right)
        )
    divisor = right.value
    if divisor == 0:
        raise ZeroDivisionError("index expression divided by zero")
    if divisor < 0:
        return floordiv(neg(left), -divisor)
    if divisor == 1:
        return left
    quotient, rest = _split(left, divisor)
    if interval.within(rest.range, 0, divisor - 1):
        return quotient
    if isinstance(rest, Bin) and rest.op == "//" and isinstance(rest.right, Const) and rest.right.value > 0:
        return add(quotient, floordiv(rest.left, rest.right.value * divisor))
    terms, constant = linear_terms(rest)
    common = gcd(divisor, *(factor for _, factor in terms))
    if common > 1:
        reduced = linear([(atom, factor // common) for atom, factor in terms], constant // common)
        return add(quotient, floordiv(reduced, divisor // common))
    return add(quotient, _bin("//", rest, right))


def mod(a: IndexLike, b: IndexLike) -> Index:
    """`a % b`, the remainder of floor division; `b` must not be zero."""
    left, right = index(a), index(b)
    if not isinstance(right, Const):
        return const(0) if left is right else _bin("%", left, right)
    divisor = right.value
    if divisor == 0:
        raise ZeroDivisionError("index expression taken modulo zero")
    if divisor < 0:
        return neg(mod(neg(left), -divisor))
    rest = _unnest_mod(_residue(left, divisor), divisor)
    if interval.within(rest.range, 0, divisor - 1):
        return rest
    terms, constant = linear_terms(rest)
    common = gcd(divisor, *(factor for _, factor in terms))
    if common > 1:
        reduced = linear([(atom, factor // common) for atom, factor in terms], constant // common)
        return add(mul(mod(reduced, divisor // common), common), constant % common)
    return _bin("%", rest, right)


def _unnest_mod(rest: Index, divisor: int) -> Index:
    """`(x % (c * d)) % d` is `x % d`, term by term."""
    terms, constant = linear_terms(rest)
    inner: list[tuple[Index, int]] = []
    changed = False
    for atom, factor in terms:
        if (
            isinstance(atom, Bin)
            and atom.op == "%"
            and isinstance(atom.right, Const)
            and (factor * atom.right.value) % divisor == 0
        ):
            inner.append((atom.left, factor))
            changed = True
        else:
            inner.append((atom, factor))
    return _residue(linear(inner, constant), divisor) if changed else rest


def ceil_div(a: IndexLike, b: IndexLike) -> Index:
    """`(a + b - 1) // b`: the quotient rounded up, for positive `b`."""
    return floordiv(add(a, sub(b, 1)), b)


def minimum(a: IndexLike, b: IndexLike) -> Index:
    """`min(a, b)`."""
    return _extremum("min", index(a), index(b))


def maximum(a: IndexLike, b: IndexLike) -> Index:
    """`max(a, b)`."""
    return _extremum("max", index(a), index(b))


def _extremum(op: BinOp, left: Index, right: Index) -> Index:
    difference = sub(left, right).range
    if difference[1] is not None and difference[1] <= 0:
        return left if op == "min" else right
    if difference[0] is not None and difference[0] >= 0:
        return right if op == "min" else left
    return _bin(op, *_sorted_pair(left, right))


def bit_and(a: IndexLike, b: IndexLike) -> Index:
    """`a & b`; with a constant 2^n - 1 it is `mod`."""
    left, right = _sorted_pair(index(a), index(b))
    for mask, other in ((left, right), (right, left)):
        if isinstance(mask, Const) and mask.value >= 0 and (mask.value & (mask.value + 1)) == 0:
            return mod(other, mask.value + 1)
    if isinstance(left, Const) and isinstance(right, Const):
        return const(left.value & right.value)
    return left if left is right else _bin("&", left, right)


def bit_or(a: IndexLike, b: IndexLike) -> Index:
    """`a | b`."""
    left, right = _sorted_pair(index(a), index(b))
    if isinstance(left, Const) and isinstance(right, Const):
        return const(left.value | right.value)
    if left is right or right is const(0):
        return left
    return right if left is const(0) else _bin("|", left, right)


def bit_xor(a: IndexLike, b: IndexLike) -> Index:
    """`a ^ b`."""
    left, right = _sorted_pair(index(a), index(b))
    if isinstance(left, Const) and isinstance(right, Const):
        return const(left.value ^ right.value)
    if left is right:
        return const(0)
    if right is const(0):
        return left
    return right if left is const(0) else _bin("^", left, right)


def shift_left(a: IndexLike, b: IndexLike) -> Index:
    """`a << b`; a multiplication for a constant `b`."""
    left, right = index(a), index(b)
    return mul(left, 1 << right.value) if isinstance(right, Const) and right.value >= 0 else _bin("<<", left, right)


def shift_right(a: IndexLike, b: IndexLike) -> Index:
    """`a >> b`; a floor division for a constant `b`."""
    left, right = index(a), index(b)
    return (
        floordiv(left, 1 << right.value) if isinstance(right, Const) and right.value >= 0 else _bin(">>", left, right)
    )


def read(array: str, at: Iterable[IndexLike]) -> Read:
    """The element `at` of a read-only integer tensor."""
    where = tuple(index(x) for x in at)
    key = ("read", array, where)
    found = lookup(key)
    if found is not None:
        return cast(Read, found)
    digest = digest_of("read", array, *(x.digest for x in where))
    return intern(key, Read(array, where, digest, interval.ANY, where))


def held(fragment: str, at: Iterable[IndexLike]) -> Held:
    """The element `at` of an integer fragment, held by the same thread."""
    where = tuple(index(x) for x in at)
    key = ("held", fragment, where)
    found = lookup(key)
    if found is not None:
        return cast(Held, found)
    digest = digest_of("held", fragment, *(x.digest for x in where))
    return intern(key, Held(fragment, where, digest, interval.ANY, where))
