"""Arithmetic of polynomials over atoms: products, powers, exp and log, with the relations between atoms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cmp_to_key, lru_cache

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Bin, Cond, Index
from argus.core.values.atoms import (
    ONE,
    ZERO,
    Above,
    Atom,
    Base,
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
    above_atom,
    base_atom,
    constant,
    count_atom,
    exp_atom,
    largest_atom,
    number_of,
    of_atom,
    opaque_atom,
    poly,
    rational,
    single,
    sorted_monomial,
    times,
)
from argus.core.values.ends import apart, residue, tidy, whole

TestAtom = Holds | Above | Inhabited
_ONE = rational(1)
_EXPANDED_POWER = 4
_FACTORS = 200
_FACTORED = 1 << 12


def add(*parts: Poly) -> Poly:
    """The sum."""
    terms: dict[Monomial, Fraction] = {}
    for part in parts:
        for monomial, factor in part.terms:
            known = terms.get(monomial)
            terms[monomial] = factor if known is None else known + factor
    return poly(terms)


def scale(value: Poly, factor: Fraction | int) -> Poly:
    """The polynomial times a number."""
    return poly({monomial: times(each, rational(factor)) for monomial, each in value.terms})


def sub(a: Poly, b: Poly) -> Poly:
    """`a - b`."""
    terms = dict(a.terms)
    for monomial, factor in b.terms:
        known = terms.get(monomial)
        terms[monomial] = -factor if known is None else known - factor
    return poly(terms)


@lru_cache(maxsize=1 << 14)
def mul(a: Poly, b: Poly) -> Poly:
    """The product, expanded."""
    if len(a.terms) * len(b.terms) > 20_000:
        raise NoNormalFormError("the normal form is too large")
    terms: dict[Monomial, Fraction] = {}
    for left, x in a.terms:
        for right, y in b.terms:
            both = times(x, y)
            for monomial, factor in _times(left, right).terms:
                known, own = terms.get(monomial), times(factor, both)
                terms[monomial] = own if known is None else known + own
    return poly(terms)


def product(parts: Iterable[Poly]) -> Poly:
    """The product of all parts."""
    result = ONE
    for part in parts:
        result = mul(result, part)
    return result


def of_monomial(monomial: Monomial, factor: Fraction | int = 1) -> Poly:
    """One term."""
    return poly({monomial: rational(factor)})


@lru_cache(maxsize=1 << 15)
def _times(a: Monomial, b: Monomial) -> Poly:
    if not a or not b:
        return of_monomial(a or b)
    powers = dict(a)
    for atom, power_ in b:
        powers[atom] = powers[atom] + power_ if atom in powers else power_
    return _related(powers)


def _related(powers: dict[Atom, Fraction]) -> Poly:
    """The product of these powers, under the relations between atoms."""
    tests = [atom for atom in powers if isinstance(atom, TestAtom)]
    sums = [(atom.bound, e) for atom, e in powers.items() if isinstance(atom, Prefix) and not atom.product]
    for test in tests:
        powers[test] = _ONE  # 0 and 1 are their own squares; no test has a negative exponent
        if isinstance(test, Above) and len(tests) > 1 and above_atom(mul(test.of, constant(-1))) in powers:
            return ZERO
        if isinstance(test, Holds) and _another_remainder(test, tests):
            return ZERO
        if isinstance(test, Holds) and _is_empty_unless(test.cond, sums):
            del powers[test]
            return _related(powers)
        if isinstance(test, Holds) and sums and _is_empty_unless(algebra.negate(test.cond), sums):
            return ZERO
        if isinstance(test, Above) and (merged := _relu_of_product(test, powers)) is not None:
            return merged
    outside: list[Poly] = []
    for atom, power_ in list(powers.items()):
        whole = power_.denominator == 1 and power_ > 0
        if isinstance(atom, Base) and (number := number_of(atom.of)) is not None:
            integer = power_.numerator // power_.denominator
            if not number and integer < 0:
                raise NoNormalFormError("a divisor is 0")
            outside.append(constant(number**integer))
            powers[atom] = power_ - integer
        elif isinstance(atom, Base) and whole and power_ <= _EXPANDED_POWER:
            outside += [atom.of] * int(power_)
            del powers[atom]
        elif isinstance(atom, Largest) and whole and power_ > 1 and (positive := relu_of(atom)) is not None:
            outside += [positive] * (int(power_) - 1)  # max(0, d)^2 = d max(0, d)
            powers[atom] = _ONE
        elif isinstance(atom, Exp) and (simpler := _under(atom, powers)) is not None:
            outside.append(power(simpler, power_))
            del powers[atom]
    rest = of_monomial(sorted_monomial(powers.items()))
    return product([rest, *outside]) if outside else rest


def _another_remainder(test: Holds, tests: list[TestAtom]) -> bool:
    """Whether one of the tests says that the number has another remainder."""
    own = residue(test.cond)
    others = [residue(each.cond) for each in tests if isinstance(each, Holds)] if own else []
    return any(own[:2] == other[:2] and own[2] != other[2] for other in others if own and other)


def _relu_of_product(test: Above, powers: dict[Atom, Fraction]) -> Poly | None:
    """[x > 0] x^k = x^(k-1) max(0, x), and likewise for [-x > 0]."""
    alone = single(test.of)
    if alone is None or len(alone[0]) != 1 or alone[0][0][1] != 1:
        return None
    atom, sign = alone[0][0][0], alone[1]
    exponent = powers.get(atom, Fraction(0))
    if exponent.denominator > 1 or exponent < 1:
        return None
    rest = {each: e for each, e in powers.items() if each is not test and each is not atom}
    if exponent > 1:
        rest[atom] = exponent - 1
    return mul(_related(rest), scale(largest((ZERO, scale(of_atom(atom), sign))), sign))


def _is_empty_unless(cond: Cond, sums: Sequence[tuple[Index, Fraction]]) -> bool:
    """Whether the condition says that the range of a sum is not empty: where it is, the sum is 0 already."""
    return any(_empty_unless(cond, *each) for each in sums)


def _empty_unless(cond: Cond, bound: Index, exponent: Fraction) -> bool:
    if exponent < 0:
        return False
    low = bound.range[0]  # of a negative bound the prefix is not 0
    return low is not None and low >= 0 and any(cond is algebra.lt(0, end) for end in _ends(bound))


def _ends(bound: Index) -> list[Index]:
    """The operands of a minimum: it is 0 where one of them is not above 0."""
    return [*_ends(bound.left), *_ends(bound.right)] if isinstance(bound, Bin) and bound.op == "min" else [bound]


def _under(atom: Exp, powers: Mapping[Atom, Fraction]) -> Poly | None:
    """exp of a product with tests that are 1 here, or 0: they are factors, or a sum is 0 elsewhere. Else None."""
    ((monomial, _),) = atom.of.terms
    rest: list[tuple[Atom, Fraction]] = []
    sums = [(other.bound, e) for other, e in powers.items() if isinstance(other, Prefix) and not other.product]
    for each, power_ in monomial:
        if isinstance(each, Holds) and sums and _is_empty_unless(algebra.negate(each.cond), sums):
            return ONE
        known = isinstance(each, Holds) and _is_empty_unless(each.cond, sums)
        if not known and not (isinstance(each, TestAtom) and each in powers):
            rest.append((each, power_))
    return exp(of_monomial(tuple(rest))) if len(rest) < len(monomial) else None


def relu_of(atom: Largest) -> Poly | None:
    """d, if the atom is max(0, d)."""
    return atom.of[1] if len(atom.of) == 2 and atom.of[0] is ZERO else None


def _compared(a: tuple[Monomial, Fraction], b: tuple[Monomial, Fraction]) -> int:
    """An order of terms that no common factor exp changes: by the other atoms, then by the exponents' difference."""
    left, right = ([(atom.digest, e) for atom, e in term[0] if not isinstance(atom, Exp)] for term in (a, b))
    if left != right:
        return -1 if left < right else 1
    exponents = [add(*(scale(x.of, e) for x, e in term[0] if isinstance(x, Exp))) for term in (a, b)]
    difference = sub(exponents[0], exponents[1])
    return 0 if difference is ZERO else -1 if difference.terms[-1][1] < 0 else 1


def content(value: Poly, *, positive: bool) -> tuple[Poly, Fraction, Poly]:
    """(m, c, q) with value = m c q: a monomial of common factors, a number, and a primitive rest.

    positive: only factors that are above 0 are taken out (exponentials, the number's absolute value).
    """
    first = min(value.terms, key=cmp_to_key(_compared))[0]
    powers: dict[Atom, Fraction] = {atom: power_ for atom, power_ in first if isinstance(atom, Exp)}
    if not positive:
        common = set[Atom].intersection(*({a for a, _ in monomial} for monomial, _ in value.terms))
        for atom in common:
            if not isinstance(atom, Exp | TestAtom):
                powers[atom] = min(dict(monomial)[atom] for monomial, _ in value.terms)
    leading = dict(value.terms)[first]
    number = abs(leading) if positive else leading
    inverse = of_monomial(sorted_monomial((atom, -power_) for atom, power_ in powers.items()))
    return of_monomial(sorted_monomial(powers.items())), number, scale(mul(value, inverse), 1 / number)


@lru_cache(maxsize=1 << 13)
def power(value: Poly, exponent: Fraction | int) -> Poly:
    """The power. A negative exponent is a division, a fractional one a root: the caller states the condition."""
    exponent = Fraction(exponent)
    if exponent == 0:
        return ONE
    if exponent.denominator == 1 and 0 < exponent <= _EXPANDED_POWER:
        return product([value] * int(exponent))
    if value is ZERO:
        return of_atom(base_atom(ZERO), exponent)
    whole = exponent.denominator == 1
    monomial, number, rest = content(value, positive=not whole)
    powers = [(atom, e * exponent) for m, _ in monomial.terms for atom, e in m]
    result = mul(of_monomial(sorted_monomial(powers)), number_power(number, exponent))
    if rest is ONE:
        return result
    alone = single(rest)
    if alone is not None and alone[1] == 1 and len(alone[0]) == 1:
        atom, inner = alone[0][0]
        if isinstance(atom, Base) and inner.denominator > 1:
            return mul(result, of_atom(atom, inner * exponent))  # a root is not negative
    return mul(result, of_atom(base_atom(rest), exponent))


def number_power(number: Fraction, exponent: Fraction) -> Poly:
    """A power of a number: exact for an integer exponent, else over its prime factors."""
    if exponent.denominator == 1:
        return constant(number ** int(exponent))
    return product(_related({base_atom(constant(prime)): e * exponent}) for prime, e in _primes(number))


def _primes(number: Fraction) -> list[tuple[Fraction, int]]:
    """The factors of a positive number; a large one is left whole."""
    found: list[tuple[Fraction, int]] = []
    for part, sign in ((number.numerator, 1), (number.denominator, -1)):
        rest, factor = part, 2
        while factor * factor <= rest and factor < _FACTORED:
            times = 0
            while rest % factor == 0:
                rest, times = rest // factor, times + 1
            found += [(Fraction(factor), sign * times)] if times else []
            factor += 1
        found += [(Fraction(rest), sign)] if rest > 1 else []
    return found


@lru_cache(maxsize=1 << 13)
def exp(value: Poly) -> Poly:
    """The exponential: that of a sum is a product, that of c log x is x^c."""
    if len(value.terms) > _FACTORS:
        raise NoNormalFormError("the normal form is too large")
    result = ONE
    for monomial, factor in value.terms:
        if (
            len(monomial) == 1
            and monomial[0][1] == 1
            and isinstance(log := monomial[0][0], Opaque)
            and log.name == "log"
        ):
            number = number_of(log.args[0])
            result = mul(result, number_power(number, factor) if number is not None else power(log.args[0], factor))
        else:
            result = mul(result, of_atom(exp_atom(of_monomial(monomial)), factor))
    return result


@lru_cache(maxsize=1 << 13)
def log(value: Poly) -> Poly:
    """log of a value above 0 (the caller states it): exponentials and numbers come out."""
    if value is ZERO:
        return of_atom(opaque_atom("log", (ZERO,)))
    monomial, number, rest = content(value, positive=True)
    parts = [scale(atom.of, e) for m, _ in monomial.terms for atom, e in m if isinstance(atom, Exp)]
    parts += [scale(of_atom(opaque_atom("log", (constant(prime),))), e) for prime, e in _primes(number)]
    alone = single(rest)
    if alone is not None and alone[1] == 1 and len(alone[0]) == 1 and not isinstance(alone[0][0][0], TestAtom):
        atom, exponent = alone[0][0]
        if exponent.denominator > 1 or exponent == -1 or (exponent == 1 and isinstance(atom, Base)):
            parts.append(scale(log(atom.of if isinstance(atom, Base) else of_atom(atom)), exponent))
            rest = ONE
    if rest is not ONE:
        parts.append(of_atom(opaque_atom("log", (rest,))))
    return add(*parts)


def count(index: Index) -> Poly:
    """An integer expression as a polynomial: sums and products are those of numbers."""
    terms, offset = linear_terms(whole(index))
    parts = [constant(offset)]
    for atom, factor in terms:
        if isinstance(atom, Bin) and atom.op == "*":
            parts.append(scale(mul(count(atom.left), count(atom.right)), factor))
        elif (halves := _half_rounded_up(atom)) is not None:
            parts.append(scale(count(halves), factor))
        elif isinstance(atom, Bin) and atom.op == "max":
            a, b = atom.left, atom.right
            parts.append(scale(sub(add(count(a), count(b)), count(algebra.minimum(a, b))), factor))
        elif (tidied := tidy(atom)) is not atom:
            parts.append(scale(count(tidied), factor))
        else:
            pivot, rest = apart(atom)
            parts.append(scale(count(pivot), factor))
            parts.append(scale(of_atom(count_atom(rest)), factor))
    return add(*parts)


def _half_rounded_up(atom: Index) -> Index | None:
    """x - x // 2, of (x + 1) // 2."""
    if not isinstance(atom, Bin) or atom.op != "//" or atom.right is not algebra.const(2):
        return None
    of = algebra.sub(atom.left, 1)
    return algebra.sub(of, algebra.floordiv(of, 2)) if linear_terms(atom.left)[1] == 1 else None


def largest(pieces: Iterable[Poly]) -> Poly:
    """The largest of polynomials, without what all pieces share and without their common scale."""
    distinct = sorted(set(pieces), key=lambda piece: piece.digest)
    if len(distinct) == 1:
        return distinct[0]
    if len(distinct) == 2:
        return _larger(*distinct)
    shared = dict(distinct[0].terms)
    for piece in distinct[1:]:
        other = dict(piece.terms)
        shared = {m: c for m, c in shared.items() if other.get(m) == c}
    out = poly(shared)
    rest = [sub(piece, out) for piece in distinct]
    size = sum((abs(c) for piece in rest for _, c in piece.terms), Fraction(0))
    scaled = sorted((scale(piece, 1 / size) for piece in rest), key=lambda piece: piece.digest)
    return add(out, scale(of_atom(largest_atom(tuple(scaled))), size))


def _larger(a: Poly, b: Poly) -> Poly:
    """max(a, b) = b + max(0, a - b), where the leading coefficient of a - b is made 1."""
    difference = sub(a, b)
    number = number_of(difference)
    if number is not None:
        return a if number > 0 else b
    leading = difference.terms[-1][1]
    rest, other = (difference, b) if leading > 0 else (scale(difference, -1), a)
    size = abs(leading)
    return add(other, scale(of_atom(largest_atom((ZERO, scale(rest, 1 / size)))), size))


def pieces_of(value: Poly) -> list[Poly]:
    """Polynomials whose largest is the value: from its only `Largest`, if the coefficient is above 0, else itself."""
    found = [(m, c) for m, c in value.terms if len(m) == 1 and m[0][1] == 1 and isinstance(m[0][0], Largest)]
    if len(found) != 1 or found[0][1] < 0:
        return [value]
    ((atom, _),), factor = found[0]
    assert isinstance(atom, Largest)
    rest = sub(value, of_monomial(found[0][0], factor))
    return [add(rest, scale(piece, factor)) for piece in atom.of]


def greatest_in(value: Poly) -> list[tuple[Greatest, Fraction]]:
    """The `Greatest` atoms that are terms of the polynomial, with their coefficients."""
    found: list[tuple[Greatest, Fraction]] = []
    for monomial, factor in value.terms:
        if len(monomial) == 1 and monomial[0][1] == 1 and isinstance(atom := monomial[0][0], Greatest):
            found.append((atom, factor))
    return found
