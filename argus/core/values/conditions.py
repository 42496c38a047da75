"""Side conditions of a normal form: what must hold for it to say what the expression says."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import product

from attrs import evolve, frozen

from argus.core import algebra
from argus.core.index import Cond, Index, Or, Symbol
from argus.core.query import Query
from argus.core.values.atoms import (
    ONE,
    Above,
    Atom,
    Base,
    Count,
    Exp,
    Holds,
    Inhabited,
    Largest,
    Opaque,
    Poly,
    Prefix,
    number_of,
    of_atom,
)
from argus.core.values.ends import undivided
from argus.core.values.expr import Compare, Test
from argus.core.values.places import limit
from argus.core.values.polynomial import content, mul, scale
from argus.core.values.rewriting import free_symbols
from argus.core.values.truth import holds
from argus.core.walk import substitute, symbols


@frozen
class Scope:
    """Where in an expression a condition is needed: under these tests, each true or false, for each `bound` variable.

    A branch not taken, and what lies outside of a range, need nothing: two conditions of one value are not the same
    where one is needed more often.
    """

    tests: frozenset[tuple[Test, bool]] = frozenset()
    bound: frozenset[Symbol] = frozenset()

    def under(self, test: Test, *, true: bool = True) -> Scope:
        """The scope of a branch."""
        return Scope(self.tests | {(undivided(test) if not isinstance(test, Compare) else test, true)}, self.bound)

    def over(self, variable: Symbol, *conds: Cond) -> Scope:
        """The scope of a reduction's body: its range and condition hold."""
        tests = {(undivided(cond), True) for cond in conds if cond is not algebra.TRUE}
        return Scope(self.tests | tests, self.bound | {variable})

    def of(self, free: frozenset[Symbol]) -> Scope:
        """The scope of a condition with these variables: without others that surely have a value within it."""
        for variable in self.bound - free:
            mine = {(test, true) for test, true in self.tests if variable in free_symbols(test)}
            lows = (limit(test, variable) for test, _ in mine if not isinstance(test, Compare))
            if any(not low[0] and all(_holds_at(variable, low[1], *each) for each in mine) for low in lows if low):
                return Scope(self.tests - mine, self.bound - {variable}).of(free)
        return self


def _holds_at(variable: Symbol, at: Index, test: Test, true: bool) -> bool:
    if isinstance(test, Compare):
        return False
    return substitute(test if true else algebra.negate(test), {variable: at}) is algebra.TRUE


EVERYWHERE = Scope()


@frozen
class Integers:
    """`given` implies `goal`, on integers: a question for a solver."""

    goal: Cond
    given: tuple[Cond, ...] = ()
    scope: Scope = EVERYWHERE

    @property
    def query(self) -> Query:
        """Unsatisfiable exactly if the condition holds."""
        return Query((*self.given, algebra.negate(self.goal)))


@frozen
class Apart:
    """A divisor is not 0."""

    of: Poly
    scope: Scope = EVERYWHERE


@frozen
class Positive:
    """The argument of a logarithm, or what a power with any exponent takes, is above 0."""

    of: Poly
    scope: Scope = EVERYWHERE


@frozen
class NotNegative:
    """The argument of a square root is at least 0."""

    of: Poly
    scope: Scope = EVERYWHERE


@frozen
class Certain:
    """A test (0 or 1) is 1: elsewhere the expression is infinite, or has no value."""

    of: Poly


_TESTS = 5
Condition = Integers | Apart | Positive | NotNegative | Certain


def settled(conditions: Iterable[Condition], facts: tuple[Cond, ...]) -> frozenset[Condition]:
    """The conditions that are left: those that follow from the signs of their parts become conditions on integers."""
    left: set[Condition] = set()
    for condition in conditions:
        for each in _simpler(condition):
            if isinstance(each, Integers) and (_is_given(each, facts) or holds(each.goal) is ONE):
                continue
            left.add(evolve(each, given=(*facts, *each.given)) if isinstance(each, Integers) else each)
    return frozenset(left)


def _is_given(condition: Integers, facts: tuple[Cond, ...]) -> bool:
    goal, given = condition.goal, {*facts, *condition.given}
    return goal in given or (isinstance(goal, Or) and not given.isdisjoint(goal.parts))


Same = Callable[[Poly, Poly], bool]
"""Whether one polynomial is a multiple of the other by a number above 0."""


def beyond(needed: Iterable[Condition], own: Iterable[Condition], same: Same = operator.is_) -> frozenset[Condition]:
    """The conditions needed that none of the own ones says."""
    every = tuple(own)
    return frozenset(each for each in needed if not any(_says(other, each, same) for other in every))


def _says(own: Condition, needed: Condition, is_same: Same) -> bool:
    """Whether the own condition is the needed one, of the same variables, wherever that is needed."""
    match own, needed:
        case Integers(), Integers():
            same = own.goal is needed.goal and set(own.given) <= set(needed.given)
            free = symbols(own.goal, *own.given)
        case Apart(), Apart():
            parts = own.of, content(own.of, positive=False)[2]  # what is not 0 has no factor that is
            rest = _primitive(needed.of)
            either = needed.of, scale(needed.of, -1), rest, scale(rest, -1)
            same, free = any(is_same(of, part) for of in either for part in parts), own.of.free
        case (Positive(), Positive()) | (NotNegative(), NotNegative()):
            same, free = is_same(_primitive(needed.of), _primitive(own.of)), own.of.free
        case _:
            return False
    bound = own.scope.bound & free == needed.scope.bound & free
    return same and bound and own.scope.tests <= needed.scope.tests


def _primitive(of: Poly) -> Poly:
    """The polynomial without factors that are above 0, exponentials and powers of numbers: it has its sign."""
    if not of.terms:
        return of
    rest = content(of, positive=True)[2]
    common = frozenset[Atom].intersection(*(frozenset(atom for atom, _ in monomial) for monomial, _ in rest.terms))
    roots = [atom for atom in common if isinstance(atom, Base) and (number_of(atom.of) or 0) > 0]
    lowest = ((atom, min(dict(monomial)[atom] for monomial, _ in rest.terms)) for atom in roots)
    return reduce(mul, (of_atom(atom, -power) for atom, power in lowest), rest)


def _simpler(condition: Condition) -> tuple[Condition, ...]:
    match condition:
        case Integers():
            return (condition,)
        case Certain(of=of):
            if number_of(of) == 1:
                return ()
            cond = _condition(of)
            return (condition,) if cond is None else (Integers(cond),)
        case Positive(of=of):
            found = positive(of)
        case Apart(of=of):
            found = _apart(of)
        case NotNegative(of=of):
            found = not_negative(of)
    return (condition,) if found is None else tuple(Integers(each, scope=condition.scope) for each in found)


def _condition(of: Poly) -> Cond | None:
    """The condition on integers that a test is: where its polynomial over other conditions is 1."""
    atoms = list({atom.digest: atom for monomial, _ in of.terms for atom, _ in monomial}.values())
    if len(atoms) > _TESTS or not all(isinstance(atom, Holds) for atom in atoms):
        return None
    ways: list[Cond] = []
    for truth in product((True, False), repeat=len(atoms)):
        true = {atom for atom, true_here in zip(atoms, truth, strict=True) if true_here}
        if sum(factor for monomial, factor in of.terms if all(atom in true for atom, _ in monomial)) == 1:
            conds = [atom.cond for atom in atoms if isinstance(atom, Holds)]
            literals = [
                cond if true_here else algebra.negate(cond) for cond, true_here in zip(conds, truth, strict=True)
            ]
            ways.append(algebra.all_of(literals))
    return algebra.any_of(ways)


def positive(of: Poly) -> tuple[Cond, ...] | None:
    """Conditions on integers under which the polynomial is above 0 by the signs of its parts; None if not known."""
    if (over := _over_a_range(of)) is not None:
        return over
    found = not_negative(of)
    if found is None:
        return None
    for monomial, factor in of.terms:
        parts = [_positive_atom(atom) for atom, _ in monomial]
        if factor > 0 and None not in parts:
            return (*found, *(cond for part in parts if part for cond in part))
    return None


def _apart(of: Poly) -> tuple[Cond, ...] | None:
    """Those under which it is not 0: above 0, or below, where both may be known of a sum over a range."""
    ways = [found for found in map(positive, (of, scale(of, -1))) if found is not None]
    return ways[0] if len(ways) == 1 else (algebra.any_of(map(algebra.all_of, ways)),) if ways else None


def _over_a_range(of: Poly) -> tuple[Cond, ...] | None:
    """Those of the sum over [a, b) of what is above 0, the difference of the prefixes of b and a: a < b."""
    terms = [(dict(monomial), factor) for monomial, factor in _primitive(of).terms]
    if len(terms) != 2 or any(len(powers) != 1 or set(powers.values()) != {1} for powers, _ in terms):
        return None
    (one, more), (two, less) = ((next(iter(powers)), factor) for powers, factor in terms)
    if more + less != 0 or not isinstance(one, Prefix) or not isinstance(two, Prefix):
        return None
    high, low = (one, two) if more > 0 else (two, one)
    if high.product or low.product or high.body is not low.body or positive(high.body) != ():
        return None
    return (algebra.lt(low.bound, high.bound),)


def not_negative(of: Poly) -> tuple[Cond, ...] | None:
    """Conditions on integers under which the polynomial is at least 0 by the signs of its parts."""
    found: list[Cond] = []
    for monomial, factor in of.terms:
        if factor < 0:
            return None
        for atom, power in monomial:
            if power.denominator > 1 or power % 2 == 0:
                continue
            conds = _not_negative_atom(atom)
            if conds is None:
                return None
            found += conds
    return tuple(found)


def _positive_atom(atom: Atom) -> tuple[Cond, ...] | None:
    match atom:
        case Exp():
            return ()
        case Count(index=index):
            return (algebra.lt(0, index),)
        case Prefix(product=False, bound=bound, body=body):
            inner = positive(body)
            return (algebra.lt(0, bound),) if inner == () else None
        case Base(of=of):
            return positive(of)
        case Largest(of=of):
            return next((each for each in map(positive, of) if each is not None), None)
        case Opaque(name="log", args=(of,)):
            number = number_of(of)
            return () if number is not None and number > 1 else None
        case _:
            return None


def _not_negative_atom(atom: Atom) -> tuple[Cond, ...] | None:
    match atom:
        case Exp() | Holds() | Above() | Inhabited():
            return ()
        case Count(index=index):
            return (algebra.le(0, index),)
        case Prefix(product=False, bound=bound, body=body):
            return (algebra.le(0, bound),) if not_negative(body) == () else None
        case Base(of=of):
            return not_negative(of)
        case Largest(of=of):
            return next((each for each in map(not_negative, of) if each is not None), None)
        case Opaque():
            return _positive_atom(atom)
        case _:
            return None
