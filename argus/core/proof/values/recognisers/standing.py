"""What a value is to the softmax of its row: dimension analysis with a reference.

    Maximum(J)        the maximum of a row's elements j in J; guarded: 0 where that is -inf
    Gap(J)            an element less Maximum(J)
    Drop(J, J')       Maximum(J) less Maximum(J')
    Weight(J)         exp of a Gap, and sums of such: e^x in units of e^Maximum(J)
    Factor(J, J')     exp of a Drop: what turns a Weight(J) into a Weight(J')
    Inverse(J)        one over a Weight(J)
    Logarithm(J)      the logarithm of a Weight(J): that of a sum of e^x, less Maximum(J)
    Statistic(J...)   counts, sums and sums of squares over sets of a row's elements, as layer norm makes of them

Weights may be added if their references are equal (I23, I24); a quotient of two has none left. A guarded maximum may
only be subtracted, a guarded sum of weights, 1 where nothing was summed, only be divided by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond
from argus.core.proof.values.multiset_count import Multiset, Sets, equal_sets
from argus.core.proof.values.recognisers.ratios import Polynomial

Power = tuple[str, float, str]
"""The function, the number that its argument is multiplied by, and of what: 2^(c x) is ("exp2", c, "X")."""


@frozen(eq=False)
class Plain:
    """Nothing of the kind."""


@frozen(eq=False)
class Maximum:
    over: Sets
    guarded: bool = False


@frozen(eq=False)
class Gap:
    over: Sets


@frozen(eq=False)
class Drop:
    before: Sets
    after: Sets


@frozen(eq=False)
class Weight:
    over: Sets
    power: Power
    guarded: bool = False


@frozen(eq=False)
class Factor:
    before: Sets
    after: Sets
    power: Power


@frozen(eq=False)
class Inverse:
    over: Sets
    power: Power


@frozen(eq=False)
class Logarithm:
    """turn: what a maximum is multiplied by, times the number in `power`, to be what the weights' units are here."""

    over: Sets
    power: Power
    turn: float


@frozen(eq=False)
class Statistic:
    """A value over the numbers of these sets, each with the name that it is of."""

    value: Polynomial
    sets: tuple[tuple[str, Multiset], ...]


Standing = Plain | Maximum | Gap | Drop | Weight | Factor | Inverse | Logarithm | Statistic
PLAIN = Plain()


def families(standing: Standing) -> tuple[Sets, ...]:
    """The families of sets that a standing speaks of."""
    match standing:
        case Plain():
            return ()
        case Maximum(over=over) | Gap(over=over) | Weight(over=over) | Inverse(over=over) | Logarithm(over=over):
            return (over,)
        case Drop(before=before, after=after) | Factor(before=before, after=after):
            return before, after
        case Statistic(sets=sets):
            return tuple({name: tally} for name, tally in sets)
        case _:
            assert_never(standing)


def one_along(standing: Standing, name: str) -> bool:
    """Whether elements that differ in a name alone have one reference: it is taken over that name."""
    return all(name in family for family in families(standing))


def guards(standing: Standing) -> bool:
    """Whether it is another number than its sets say, where they are empty."""
    return isinstance(standing, Maximum | Weight) and standing.guarded


def changed(standing: Standing, change: Callable[[Multiset], Multiset]) -> Standing:
    """The same of other sets."""

    def all_of(sets: Mapping[str, Multiset]) -> Sets:
        return {name: change(each) for name, each in sets.items()}

    match standing:
        case Plain():
            return standing
        case Maximum(over=over, guarded=guarded):
            return Maximum(all_of(over), guarded)
        case Gap(over=over):
            return Gap(all_of(over))
        case Drop(before=before, after=after):
            return Drop(all_of(before), all_of(after))
        case Weight(over=over, power=power, guarded=guarded):
            return Weight(all_of(over), power, guarded)
        case Factor(before=before, after=after, power=power):
            return Factor(all_of(before), all_of(after), power)
        case Inverse(over=over, power=power):
            return Inverse(all_of(over), power)
        case Logarithm(over=over, power=power, turn=turn):
            return Logarithm(all_of(over), power, turn)
        case Statistic(value=value, sets=sets):
            return Statistic(value, tuple((name, change(each)) for name, each in sets))
        case _:
            assert_never(standing)


def agreeing(one: Standing, two: Standing) -> Cond | None:
    """The condition that two values stand alike; None if they differ in kind."""
    mine, theirs = families(one), families(two)
    if getattr(one, "value", None) != getattr(two, "value", None) or len(mine) != len(theirs):
        return None
    if type(one) is not type(two) or getattr(one, "power", None) != getattr(two, "power", None):
        return None
    if getattr(one, "turn", 1.0) != getattr(two, "turn", 1.0):
        return None
    if guards(one) != guards(two):
        return None
    return algebra.all_of(equal_sets(a, b) for a, b in zip(mine, theirs, strict=True))
