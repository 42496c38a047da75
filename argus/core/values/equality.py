"""Whether two expressions are equal: normal forms first, then numbers at small sizes as a witness against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import islice, product
from math import isfinite, isnan
from typing import TypeVar

from attrs import evolve, frozen

from argus.core.index import Cond, Index, Symbol
from argus.core.values import binding
from argus.core.values import polynomial as polys
from argus.core.values.atoms import (
    ONE,
    ZERO,
    Above,
    Atom,
    Base,
    Exp,
    Largest,
    NoNormalFormError,
    Opaque,
    Poly,
    inner,
    number_of,
    of_atom,
)
from argus.core.values.cases import Cases, Infinite, Open, Value, settle, within
from argus.core.values.conditions import Apart, Certain, Condition, Integers, beyond, settled
from argus.core.values.congruence import has_quotient, proportional, unified
from argus.core.values.decided import resolved
from argus.core.values.drawn import INTEGERS, seeded
from argus.core.values.effort import Effort, size, size_of_product, size_within, unlimited
from argus.core.values.evaluation import Evaluation
from argus.core.values.expr import Expr
from argus.core.values.literals import rewritten
from argus.core.values.nested_tests import nested, where
from argus.core.values.normal import FormOf, NormalForm, normal_form
from argus.core.values.rewriting import free_symbols
from argus.core.walk import evaluate as evaluate_index
from argus.core.walk import symbols

_SPLITS = 6
_NESTED = 2
"""Functions within functions whose contents are compared, at most."""
_TESTS = 4
"""Conditions within functions of which both cases are looked at, at most."""
_SEEDS = 3
_SMALL = (2, 3, 5, 1, 4)
_TOLERANCE = 1e-7
_OF_CONSTANTS = 1e-4
_SAMPLES = 24


@frozen
class Equal:
    """Equal for all sizes and elements for which the formula's own conditions hold."""

    conditions: frozenset[Condition]


@frozen
class Different:
    """Different numbers at these sizes: the elements are those of `seeded(seed)`."""

    sizes: Mapping[Symbol, int]
    seed: int
    left: float
    right: float


@frozen
class Undecided:
    """Equal if these conditions hold; `reason` is not empty where the normal forms differ."""

    conditions: frozenset[Condition]
    reason: str = ""


Part = TypeVar("Part", Index, Cond)
Answer = Equal | Different | Undecided


def equal(held: Expr, formula: Expr, facts: tuple[Cond, ...] = ()) -> Answer:
    """Whether what is held equals the formula, under the facts, wherever the formula's own conditions hold."""
    answer = by_normal_forms(held, formula, facts)
    if isinstance(answer, Equal) or not answer.reason:
        return answer
    return _witness(held, formula, facts) or answer


def by_normal_forms(
    held: Expr,
    formula: Expr,
    facts: tuple[Cond, ...] = (),
    form: FormOf = normal_form,
    effort: Effort | None = None,
) -> Equal | Undecided:
    """The same without numbers: cheap where the answer is of use only if it is `Equal`.

    form: `normal_form`. effort: what it may take; without a limit if None.
    """
    limit = effort or unlimited()
    held_side, formula_side = form(held, limit), form(formula, limit)
    if isinstance(held_side, str) or isinstance(formula_side, str):
        return Undecided(frozenset(), held_side if isinstance(held_side, str) else str(formula_side))
    try:
        return _by_sides(held_side, formula_side, facts, limit)
    except NoNormalFormError as error:
        return Undecided(frozenset(), str(error))


def _by_sides(
    held_side: NormalForm, formula_side: NormalForm, facts: tuple[Cond, ...], effort: Effort
) -> Equal | Undecided:
    """Raises NoNormalFormError if what both need is too large."""
    found = _leaves(held_side.value, formula_side.value, facts, (), effort)
    if found is None:
        return Undecided(frozenset(), "the normal forms differ")
    own = settled(formula_side.conditions.union(*formula_side.shown.values()), facts)
    said = {*own, *formula_side.conditions, *formula_side.shown}
    taken = (each for it, each in held_side.shown.items() if not _is_said(it, said, facts))
    shown = {*said, *held_side.shown}
    left_over = beyond(settled(held_side.conditions.union(found, *taken), facts), shown)
    if left_over:  # the same where the facts decide tests and minima
        left_over, shown = _decided(left_over, facts), shown | _decided(shown, facts)
        left_over = beyond(settled(left_over, facts), shown)
    if left_over:  # the same of a quotient that is written otherwise
        left_over = beyond(left_over, shown, lambda x, y: _are_proportional(x, y, shown, effort))
    return Undecided(left_over) if left_over else Equal(own)


def _is_said(condition: Condition, said: set[Condition], facts: tuple[Cond, ...]) -> bool:
    """Whether the formula's own conditions say it: what shows it by its shape need then not hold."""
    return not beyond((condition,), said) or not beyond(_decided((condition,), facts), said | _decided(said, facts))


def _decided(conditions: Iterable[Condition], facts: tuple[Cond, ...]) -> set[Condition]:
    """The conditions, about values in which tests and minima that the facts decide are replaced."""
    return {each if isinstance(each, Integers) else evolve(each, of=resolved(each.of, facts)) for each in conditions}


def _are_proportional(x: Poly, y: Poly, shown: set[Condition], effort: Effort) -> bool:
    """Whether x = c y with a number c above 0, where the divisors that this takes are shown not to be 0."""
    if not (has_quotient(x) or has_quotient(y)):
        return False
    divisors = set[Poly]()
    found = proportional(x, y, lambda part: _finished(part, divisors, (), effort))
    return found is not None and not beyond(settled(map(Apart, divisors), ()), shown)


def _leaves(
    a: Value, b: Value, facts: tuple[Cond, ...], path: tuple[Poly, ...], effort: Effort
) -> set[Condition] | None:
    """What must hold for the values to be equal, None if a finite branch differs. path: tests that are 1 here."""
    a, b = settle(a), settle(b)
    tests = a.test if isinstance(a, Cases) else b.test if isinstance(b, Cases) else None
    if tests is not None:
        test = resolved(tests, facts)
        found: set[Condition] = set()
        for value, holds in ((test, True), (polys.sub(ONE, test), False)):
            if value is ZERO:
                continue
            part = _leaves(within(a, tests, holds=holds), within(b, tests, holds=holds), facts, (*path, value), effort)
            if part is None:
                return None
            found |= part
        return found
    if isinstance(a, Poly) and isinstance(b, Poly):
        effort.spend(size_within(a) + size_within(b))
        difference = polys.sub(resolved(a, facts), resolved(b, facts))
        for test_ in path:
            effort.spend(size_of_product(difference, test_))
            difference = polys.mul(difference, test_)
        divisors: set[Poly] = set()
        return set(map(Apart, divisors)) if vanishes(difference, divisors, effort) else None
    if isinstance(a, Infinite) and a == b:
        return set()
    assert not isinstance(a, Open | Cases)
    return {Certain(polys.sub(ONE, polys.product(path)))}  # one side has no finite value: this must not occur


# -- polynomials that are 0 ----------------------------------------------------------------------------


def vanishes(
    value: Poly,
    divisors: set[Poly],
    effort: Effort,
    signs: tuple[tuple[Poly, int], ...] = (),
    splits: int = _TESTS,
) -> bool:
    """Whether the value is 0 for all atoms: after clearing denominators, by cases of tests and signs that occur.

    divisors: receives what terms without it were multiplied by, which must not be 0 even where no term divides by it.
    """
    value = _finished(value, divisors, signs, effort)
    if value is ZERO:
        return True
    if len(signs) == _SPLITS:
        return False
    if cond := min(nested(value), key=lambda each: each.digest, default=None):
        ways = (where(value, cond, binding.mapped, true=true) for true in (True, False))
        return splits > 0 and all(vanishes(way, divisors, effort, signs, splits - 1) for way in ways)
    sign = next(_signs(value), None)
    if sign is None:
        return False
    return all(vanishes(value, divisors, effort, (*signs, (sign, case)), splits) for case in (1, 0, -1))


def _finished(
    value: Poly, divisors: set[Poly], signs: tuple[tuple[Poly, int], ...], effort: Effort, levels: int = _NESTED
) -> Poly:
    """The value without denominators, under these signs, one atom in place of those with equal contents."""
    value = _under(_cleared(value, divisors, effort), divisors, signs, effort)
    if value is ZERO or levels == 0:
        return value
    found = set[Poly]()
    one = unified(value, lambda part: _finished(part, found, signs, effort, levels - 1))
    if one is value:
        return value
    divisors |= found
    return _under(_cleared(one, divisors, effort), divisors, signs, effort)


def _under(value: Poly, divisors: set[Poly], signs: tuple[tuple[Poly, int], ...], effort: Effort) -> Poly:
    """The value under all these signs, until nothing changes: one may uncover a test of another."""
    for _ in range(len(signs) + 1):
        before = value
        for of, sign in signs:
            effort.spend(size_within(value))
            value = _cleared(_assumed(value, of, sign), divisors, effort)
        if value is before:
            break
    return value


def _cleared(value: Poly, divisors: set[Poly], effort: Effort) -> Poly:
    """The value times powers of its bases, expanded: it is 0 exactly where the value is, as no divisor is 0."""
    while True:
        effort.spend(size(value))
        base = next(_bases(value), None)
        if base is None:
            return value
        lowest = min(dict(monomial).get(base, Fraction(0)) for monomial, _ in value.terms)
        lowest = min(lowest, Fraction(0)) if lowest.denominator == 1 else lowest
        if lowest < 0 and any(dict(monomial).get(base, Fraction(0)) != lowest for monomial, _ in value.terms):
            divisors.add(base.of)
        parts: list[Poly] = []
        for monomial, factor in value.terms:
            powers = dict(monomial)
            exponent = powers.pop(base, Fraction(0)) - lowest
            rest = polys.of_monomial(tuple(powers.items()), factor)
            if exponent.denominator == 1:
                parts.append(polys.product([rest, *[base.of] * int(exponent)]))
            else:
                parts.append(polys.mul(rest, of_atom(base, exponent)))
        value = polys.add(*parts)


def _bases(value: Poly) -> Iterator[Base]:
    """Bases with an integer exponent, or with a common one that is none."""
    for monomial, _ in value.terms:
        for atom, power in monomial:
            if isinstance(atom, Base) and (power.denominator == 1 or all(dict(m).get(atom) for m, _ in value.terms)):
                yield atom


def _signs(value: Poly) -> Iterator[Poly]:
    """Differences d of which max(0, d) or the test d > 0 occurs as an atom, innermost first."""
    for monomial, _ in value.terms:
        for atom, _ in monomial:
            d = _decided_by(atom)
            below = atom.args if isinstance(atom, Opaque) else (atom.of,) if isinstance(atom, Base | Exp) else ()
            for part in (d,) if d is not None else below:
                yield from _signs(part)
            if d is not None:
                yield d


def _decided_by(atom: Atom) -> Poly | None:
    """d, of max(0, d) or of the test d > 0."""
    return atom.of if isinstance(atom, Above) else polys.relu_of(atom) if isinstance(atom, Largest) else None


def _assumed(value: Poly, of: Poly, sign: int) -> Poly:
    """The value where `of` has this sign: in tests and maxima, and where it is 0 for one of its atoms."""
    root = _solved(of) if sign == 0 else None

    @cache
    def visit(atom: Atom) -> Poly | None:
        if root is not None and atom is root[0]:
            return root[1]
        d = _decided_by(atom)
        known = None if d is None else _sign_of(d, of, sign)
        if d is not None and known is not None:
            return (ONE if isinstance(atom, Above) else d) if known > 0 else ZERO
        if all(inside(each) is each for each in inner(atom)):
            return None
        return binding.mapped(atom, inside, _same, _same)

    @cache
    def inside(poly: Poly) -> Poly:
        return rewritten(poly, visit)

    return inside(value)


def _same(part: Part) -> Part:
    return part


def _sign_of(d: Poly, of: Poly, sign: int) -> int | None:
    """The sign of d = a of + c, where that of `of` decides it."""
    monomial, own = of.terms[-1]
    a = dict(d.terms).get(monomial, Fraction(0)) / own if monomial else Fraction(0)
    c = number_of(polys.sub(d, polys.scale(of, a)))
    if c is None:
        return None
    if a == 0 or sign == 0:
        return (c > 0) - (c < 0)
    side = sign if a > 0 else -sign
    return side if c * side >= 0 else None


def _solved(of: Poly) -> tuple[Atom, Poly] | None:
    """(atom, what it is where the polynomial is 0), for an atom that occurs in one linear term only."""
    for monomial, factor in of.terms:
        if len(monomial) != 1 or monomial[0][1] != 1 or isinstance(monomial[0][0], Above | Largest):
            continue
        atom = monomial[0][0]
        rest = polys.sub(of, polys.of_monomial(monomial, factor))
        if not any(atom is each for m, _ in rest.terms for each, _ in m):
            return atom, polys.scale(rest, -1 / factor)
    return None


# -- witnesses -----------------------------------------------------------------------------------------


def _witness(a: Expr, b: Expr, facts: tuple[Cond, ...]) -> Different | None:
    """Sizes at which the numbers differ by more than rounding explains."""
    for found in _numbers(a, b, facts):
        finite = isfinite(found.left) and isfinite(found.right)
        if finite and not _near(found, _TOLERANCE):
            return found
    return None


def near(a: Expr, b: Expr) -> bool:
    """Whether numbers at a few small sizes agree but for the rounding of constants, which nothing may amplify."""
    known = [each for each in islice(_numbers(a, b, ()), _SAMPLES) if not isnan(each.left) and not isnan(each.right)]
    return bool(known) and all(each.left == each.right or _near(each, _OF_CONSTANTS) for each in known)


def _near(found: Different, tolerance: float) -> bool:
    left, right = found.left, found.right
    return isfinite(left - right) and abs(left - right) <= tolerance * max(1.0, abs(left), abs(right))


def _numbers(a: Expr, b: Expr, facts: tuple[Cond, ...]) -> Iterator[Different]:
    """Both values at small sizes that meet the facts, of drawn elements."""
    names = sorted(free_symbols(a) | free_symbols(b) | symbols(*facts), key=lambda symbol: symbol.name)
    for sizes in _assignments(names):
        if not all(evaluate_index(fact, sizes, arrays=INTEGERS) for fact in facts):
            continue
        for seed in range(_SEEDS):
            at = Evaluation(sizes, seeded(seed), seed=seed)
            yield Different(sizes, seed, float(at.value(a)), float(at.value(b)))


def _assignments(names: list[Symbol]) -> Iterator[dict[Symbol, int]]:
    """Small sizes within the symbols' ranges: all combinations of a few, as many as stay cheap."""
    choices: list[list[int]] = []
    for name in names:
        low, high = name.low, name.high
        fits = [n for n in (*_SMALL, 0) if (low is None or low <= n) and (high is None or n <= high)]
        choices.append(fits or [low if low is not None else high if high is not None else 0])
    for count, numbers in enumerate(product(*choices)):
        if count == 200:
            return
        yield dict(zip(names, numbers, strict=True))
