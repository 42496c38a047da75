"""Sums of powers over sets: identities hold for all elements, and where sets are empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import assert_never

import pytest

from argus.core import algebra
from argus.core.proof.values.recognisers import ratios
from argus.core.proof.values.recognisers.ratios import Many, Own, Polynomial, Power, Size, atom

A, B, BOTH = frozenset({0}), frozenset({1}), frozenset({0, 1})
SETS: tuple[Sequence[int], ...] = ((), (3,), (2, -5), (1, 4, 4, 9))


def valued(value: Polynomial, sets: Mapping[int, Sequence[int]], own: int = 0) -> Fraction:
    """What a polynomial is of these elements."""
    total = Fraction(0)
    for monomial, coefficient in value.items():
        term = coefficient
        for which, exponent in monomial:
            match which:
                case Own():
                    base = Fraction(own)
                case Power(power=power, of=of):
                    base = Fraction(sum(x**power for x in sets[of]))
                case Many(of=of):
                    base = Fraction(max(1, sum(len(sets[each]) for each in of)))
                case Size():
                    base = Fraction(7)
                case _:
                    assert_never(which)
            term *= base**exponent
        total += term
    return total


def merged(weight: Polynomial) -> Polynomial:
    """Squared distances of both sets, from those of each and the distance of their means, by this weight."""
    gap = ratios.minus(ratios.mean(B), ratios.mean(A))
    between = ratios.times(ratios.times(gap, gap), weight)
    return ratios.plus(ratios.plus(ratios.squares(A), ratios.squares(B)), between)


def counts(*of: int) -> Polynomial:
    found = ratios.number(1)
    for each in of:
        found = ratios.times(found, atom(Power(0, each)))
    return found


WEIGHT = ratios.times(counts(0, 1), atom(Many(BOTH), -1))


def test_squared_distances_merge_by_the_harmonic_weight() -> None:
    assert ratios.equal(merged(WEIGHT), ratios.squares(BOTH))
    assert ratios.united(merged(WEIGHT)) == ratios.squares(A)


@pytest.mark.parametrize(
    "weight",
    [
        counts(0),
        counts(1),
        ratios.times(counts(1), atom(Many(BOTH), -1)),
        ratios.times(counts(0, 1), atom(Many(A), -1)),
    ],
)
def test_another_weight_merges_nothing(weight: Polynomial) -> None:
    assert not ratios.equal(merged(weight), ratios.squares(BOTH))
    assert ratios.united(merged(weight)) is None


def test_a_mean_moves_by_its_share_of_the_difference() -> None:
    share = ratios.times(counts(1), atom(Many(BOTH), -1))
    moved = ratios.plus(ratios.mean(A), ratios.times(ratios.minus(ratios.mean(B), ratios.mean(A)), share))
    assert ratios.united(moved) == ratios.mean(A)
    unguarded = ratios.plus(ratios.mean(A), ratios.minus(ratios.mean(B), ratios.mean(A)))
    assert ratios.united(unguarded) == ratios.mean(A)  # the mean of B alone
    assert ratios.mentioned(unguarded) == (1,)


def test_a_count_over_itself_is_one_only_where_there_is_something() -> None:
    share = ratios.times(counts(0), atom(Many(A), -1))
    assert not ratios.equal(share, ratios.number(1))
    assert ratios.tidy(share) == share
    assert ratios.tidy(ratios.times(share, atom(Power(1, 0)))) == atom(Power(1, 0))


FORMS = [
    merged(WEIGHT), merged(counts(0)), ratios.mean(BOTH), ratios.variance(A),
    ratios.times(ratios.times(counts(0, 0), atom(Many(A), -1)), atom(Power(1, 0))),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_normal_forms_keep_the_number(form: Polynomial) -> None:
    for one, two in product(SETS, SETS):
        assert valued(ratios.tidy(form), {0: one, 1: two}) == valued(form, {0: one, 1: two})
    assert valued(form, {0: (), 1: ()}) == ratios.value_of_nothing(form)


@pytest.mark.parametrize(("one", "two"), list(product(FORMS, FORMS)))
def test_equal_forms_are_equal_numbers(one: Polynomial, two: Polynomial) -> None:
    alike = all(valued(one, {0: a, 1: b}) == valued(two, {0: a, 1: b}) for a, b in product(SETS, SETS))
    assert alike or not ratios.equal(one, two)


def test_the_sum_of_squared_distances_over_their_own_set() -> None:
    away = ratios.minus(atom(Own()), ratios.mean(A))
    over = ratios.summed(ratios.times(away, away), 1)
    assert ratios.equal(ratios.renumbered(over, {0: 0, 1: 0}), ratios.squares(A))
    assert not ratios.equal(over, ratios.squares(B))
    for elements in SETS[1:]:
        whole = sum((valued(ratios.times(away, away), {0: elements}, own) for own in elements), Fraction(0))
        assert whole == valued(ratios.squares(A), {0: elements})


def test_only_counts_divide() -> None:
    assert ratios.inverse(ratios.mean(A)) is None
    assert ratios.inverse(ratios.number(0)) is None
    assert ratios.inverse(atom(Size(algebra.const(7)))) == atom(Size(algebra.const(7)), -1)
