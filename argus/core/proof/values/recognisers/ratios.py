"""Sums of powers over sets, added, multiplied and divided by how many elements there are: exact normal forms.

A value is a polynomial over the sums of x^0, x^1 and x^2 of numbered sets, over the element's own x, and over inverses
of counts. The count that divides is 1 where there is nothing to count; whether two values are equal is asked apart for
each choice of sets that are empty, where such a guard is either the count itself or 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import combinations

from attrs import frozen

from argus.core.index import Index


@frozen
class Own:
    """The element itself."""


@frozen
class Power:
    """The sum of x^power over set number `of`."""

    power: int
    of: int


@frozen
class Many:
    """How many elements these sets have together; 1 if none."""

    of: frozenset[int]


@frozen
class Size:
    """A number that the program counts by, not 0."""

    value: Index


Atom = Own | Power | Many | Size
Monomial = frozenset[tuple[Atom, int]]
Polynomial = Mapping[Monomial, Fraction]
"""Coefficients, of which none is 0; exponents of counts that divide, and of sizes, may be negative."""

ONE: Monomial = frozenset()
_MOST_TERMS = 64


def atom(which: Atom, exponent: int = 1) -> Polynomial:
    return {frozenset({(which, exponent)}): Fraction(1)}


def number(value: float) -> Polynomial:
    return {ONE: Fraction(value)} if value else {}


def plus(one: Polynomial, two: Polynomial, factor: Fraction = Fraction(1)) -> Polynomial:
    """The first and `factor` times the second."""
    found = dict(one)
    for monomial, coefficient in two.items():
        found[monomial] = found.get(monomial, Fraction(0)) + factor * coefficient
    return {monomial: value for monomial, value in found.items() if value}


def minus(one: Polynomial, two: Polynomial) -> Polynomial:
    return plus(one, two, Fraction(-1))


def times(one: Polynomial, two: Polynomial) -> Polynomial:
    found: Polynomial = {}
    for mine, a in one.items():
        for theirs, b in two.items():
            found = plus(found, {_product(mine, theirs): a * b})
    return found


def _product(one: Monomial, two: Monomial) -> Monomial:
    exponents = dict(one)
    for which, exponent in two:
        exponents[which] = exponents.get(which, 0) + exponent
    return frozenset((which, exponent) for which, exponent in exponents.items() if exponent)


def power_of(value: Polynomial, exponent: int) -> Polynomial:
    found: Polynomial = number(1)
    for _ in range(exponent):
        found = times(found, value)
    return found


def inverse(value: Polynomial) -> Polynomial | None:
    """One over it, of a product of counts that are never 0; None of anything else."""
    if len(value) != 1:
        return None
    ((monomial, coefficient),) = value.items()
    if not all(isinstance(which, Many | Size) for which, _ in monomial):
        return None
    return {frozenset((which, -exponent) for which, exponent in monomial): 1 / coefficient}


def too_long(value: Polynomial) -> bool:
    """Whether it is one that no kernel is meant to compute."""
    return len(value) > _MOST_TERMS


def tidy(value: Polynomial) -> Polynomial:
    """Counts over themselves are 1 where they multiply another sum over the same set, which is 0 if it is empty."""
    found: Polynomial = {}
    for monomial, coefficient in value.items():
        found = plus(found, {_tidied(monomial): coefficient})
    return found


def _tidied(monomial: Monomial) -> Monomial:
    exponents = dict(monomial)
    for which in [each for each, exponent in monomial if isinstance(each, Many) and exponent < 0]:
        assert isinstance(which, Many)
        if len(which.of) != 1:
            continue
        (one,) = which.of
        count = Power(0, one)
        others = any(isinstance(a, Power) and a.of == one and a != count for a in exponents)
        while exponents.get(which, 0) < 0 and exponents.get(count, 0) > (0 if others else 1):
            exponents[which] += 1
            exponents[count] -= 1
    return frozenset((which, exponent) for which, exponent in exponents.items() if exponent)


def renumbered(value: Polynomial, number_of: Mapping[int, int]) -> Polynomial:
    """The same over sets of other numbers; sets that become one are added to themselves nowhere."""
    found: Polynomial = {}
    for monomial, coefficient in value.items():
        made: Monomial = ONE
        for which, exponent in monomial:
            made = _product(made, frozenset({(_renumbered(which, number_of), exponent)}))
        found = plus(found, {made: coefficient})
    return tidy(found)


def _renumbered(which: Atom, number_of: Mapping[int, int]) -> Atom:
    if isinstance(which, Power):
        return Power(which.power, number_of[which.of])
    if isinstance(which, Many):
        return Many(frozenset(number_of[each] for each in which.of))
    return which


def mentioned(value: Polynomial) -> tuple[int, ...]:
    """The numbers of the sets that it speaks of, ascending."""
    return tuple(sorted({each for monomial in value for which, _ in monomial for each in _sets(which)}))


def _sets(which: Atom) -> Iterable[int]:
    if isinstance(which, Power):
        return (which.of,)
    return which.of if isinstance(which, Many) else ()


def has_own(value: Polynomial) -> bool:
    return any(isinstance(which, Own) for monomial in value for which, _ in monomial)


def degree(value: Polynomial) -> int:
    """The highest power of the element itself."""
    return max((e for monomial in value for which, e in monomial if isinstance(which, Own)), default=0)


def summed(value: Polynomial, over: int) -> Polynomial:
    """The sum of it over the elements of a set, of which it speaks nowhere yet."""
    found: Polynomial = {}
    for monomial, coefficient in value.items():
        own = sum(exponent for which, exponent in monomial if isinstance(which, Own))
        rest = frozenset((which, exponent) for which, exponent in monomial if not isinstance(which, Own))
        found = plus(found, {rest | {(Power(own, over), 1)}: coefficient})
    return tidy(found)


def linear_in(value: Polynomial, over: int) -> bool:
    """Whether each of its terms has one sum over this set as a factor, and nothing else of that set."""
    return all(
        [(which, exponent) for which, exponent in monomial if over in _sets(which)]
        in [[(Power(power, over), 1)] for power in range(3)]
        for monomial in value
    )


# -- equality ------------------------------------------------------------------------------------------------


def equal(one: Polynomial, two: Polynomial) -> bool:
    """Whether two values are the same numbers whatever the elements are, and whichever sets are empty."""
    difference = minus(one, two)
    return all(not _expanded(_where(difference, empty)) for empty in _choices(mentioned(difference)))


def _choices(sets: tuple[int, ...]) -> Iterator[frozenset[int]]:
    for count in range(len(sets) + 1):
        yield from map(frozenset, combinations(sets, count))


def value_of_nothing(value: Polynomial) -> float | None:
    """What it is where all its sets are empty, if that is a number."""
    left = _where(value, frozenset(mentioned(value)))
    return float(left.get(ONE, Fraction(0))) if left.keys() <= {ONE} else None


def _where(value: Polynomial, empty: frozenset[int]) -> Polynomial:
    """The value where exactly these sets have no element."""
    found: Polynomial = {}
    for monomial, coefficient in value.items():
        if any(isinstance(which, Power) and which.of in empty for which, _ in monomial):
            continue
        made: Monomial = ONE
        for which, exponent in monomial:
            left = _left(which, empty)
            made = made if left is None else _product(made, frozenset({(left, exponent)}))
        found = plus(found, {made: coefficient})
    return found


def _left(which: Atom, empty: frozenset[int]) -> Atom | None:
    if not isinstance(which, Many):
        return which
    left = which.of - empty
    if not left:
        return None
    return Power(0, next(iter(left))) if len(left) == 1 else Many(left)


def _expanded(value: Polynomial) -> Polynomial:
    """The value times what makes all exponents positive, counts of several sets being the sums of theirs."""
    least: dict[Atom, int] = {}
    for monomial in value:
        for which, exponent in monomial:
            least[which] = min(exponent, least.get(which, 0))
    found: Polynomial = {}
    for monomial, coefficient in value.items():
        exponents = {which: 0 for which, low in least.items() if low < 0} | dict(monomial)
        term: Polynomial = {ONE: coefficient}
        for which, exponent in exponents.items():
            base = _count(which) if isinstance(which, Many) else atom(which)
            term = times(term, power_of(base, exponent - least[which]))
        found = plus(found, term)
    return found


def _count(which: Many) -> Polynomial:
    found: Polynomial = {}
    for each in sorted(which.of):
        found = plus(found, atom(Power(0, each)))
    return found


# -- what statisticians call them ----------------------------------------------------------------------------


def total(power: int, sets: Iterable[int]) -> Polynomial:
    """The sum of x^power over several sets."""
    found: Polynomial = {}
    for each in sets:
        found = plus(found, atom(Power(power, each)))
    return found


def mean(sets: frozenset[int]) -> Polynomial:
    """The mean over several sets together, 0 of none."""
    return times(total(1, sorted(sets)), atom(Many(sets), -1))


def squares(sets: frozenset[int]) -> Polynomial:
    """The sum of squared distances from that mean."""
    sums = total(1, sorted(sets))
    return minus(total(2, sorted(sets)), times(times(sums, sums), atom(Many(sets), -1)))


def variance(sets: frozenset[int]) -> Polynomial:
    return times(squares(sets), atom(Many(sets), -1))


def united(value: Polynomial) -> Polynomial | None:
    """The same as one over the union of its sets, number 0, where it is a count, a sum, a mean or squares of that."""
    sets = frozenset(mentioned(value))
    if not sets:
        return None
    whole = frozenset({0})
    forms = [(total(power, sorted(sets)), total(power, whole)) for power in range(3)]
    forms += [(mean(sets), mean(whole)), (squares(sets), squares(whole)), (variance(sets), variance(whole))]
    return next((of_one for of_many, of_one in forms if equal(value, of_many)), None)
