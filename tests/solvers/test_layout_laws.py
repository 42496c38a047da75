"""Lemmas and laws of the layout algebra for all strides, indices and sizes at once, by z3 and by cvc5.

Extents are given numbers (a floor by a symbol beside products of symbols is undecidable), strides and indices are
unbounded symbols. Each valid statement has a false variant that the same solver must refute.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from attrs import frozen

from argus.core.algebra import add, all_of, const, eq, floordiv, implies, le, lt, mod, mul, negate, sub, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.query import Budget, Query, Sat, Unsat
from argus.layout import Swizzle
from argus.solvers.registry import get

SOLVERS = ("z3", "cvc5")
BUDGET = Budget.about(10)


def free(name: str, low: int | None = None, high: int | None = None) -> Index:
    return sym(Symbol(name, "fresh", low, high))


n, x, y, p, q = map(free, "nxypq")
d = [free(f"d{mode}") for mode in range(3)]


@frozen
class Statement:
    name: str
    goal: Cond
    false: Cond


def image(modes: list[tuple[int, Index]], index: Index) -> Index:
    """A layout at an index, as a call defines it: the last mode takes the rest."""
    total: Index = const(0)
    rest = index
    for extent, stride in modes[:-1]:
        total = add(total, mul(mod(rest, extent), stride))
        rest = floordiv(rest, extent)
    return add(total, mul(rest, modes[-1][1]))


def step_form(modes: list[tuple[int, Index]], index: Index) -> Index:
    """slope * n + sum of jump_k * floor(n / below_k) of `argus.core.layout.images.steps`."""
    total, below = mul(index, modes[0][1]), 1
    for (extent, stride), (_, after) in pairwise(modes):
        below *= extent
        total = add(total, mul(floordiv(index, below), sub(after, mul(stride, extent))))
    return total


def steps(*extents: int) -> Statement:
    modes = list(zip(extents, d, strict=False))
    # One more element in the first mode is another function.
    other = [(extents[0] + 1, d[0]), *modes[1:]]
    return Statement(
        f"step form of {extents}",
        eq(image(modes, n), step_form(modes, n)),
        eq(image(modes, n), step_form(other, n)),
    )


def deviation(below: int) -> Statement:
    """What a floor of a sum has more than the sum of floors, for two modes of B with strides p and q."""
    along = sub(floordiv(add(mul(x, p), mul(y, q)), below), add(mul(x, floordiv(p, below)), mul(y, floordiv(q, below))))
    rests = add(mul(x, mod(p, below)), mul(y, mod(q, below)))
    return Statement(f"deviation, {below}", eq(along, floordiv(rests, below)), eq(along, const(0)))


def no_deviation(below: int) -> Statement:
    """Why a composition exists where the rests stay below a step."""
    rests = add(mul(x, mod(p, below)), mul(y, mod(q, below)))
    along = sub(floordiv(add(mul(x, p), mul(y, q)), below), add(mul(x, floordiv(p, below)), mul(y, floordiv(q, below))))
    inside = all_of([le(0, rests), lt(rests, below)])
    return Statement(
        f"no deviation, {below}",
        implies(inside, eq(along, const(0))),
        implies(all_of([le(0, rests), le(rests, below)]), eq(along, const(0))),
    )


def merge(extent: int) -> Statement:
    joined = [(extent, d[0]), (5, mul(d[0], extent))]
    apart = [(extent, d[0]), (5, d[1])]
    return Statement(
        f"coalesce merges, {extent}", eq(image(joined, n), mul(n, d[0])), eq(image(apart, n), mul(n, d[0]))
    )


def covers(extent: int) -> Statement:
    """extent:s and its complement s:1 reach each of [0, extent * s), for all s."""
    s, at = free("s", 1), free("at", 0)
    digit, rest = floordiv(at, s), mod(at, s)

    def reached(within: int) -> Cond:
        return implies(
            lt(at, mul(s, within)),
            all_of([le(0, digit), lt(digit, extent), lt(rest, s), eq(at, add(mul(digit, s), rest))]),
        )

    return Statement(f"complement covers, {extent}", reached(extent), reached(extent + 1))


def disjoint(extent: int) -> Statement:
    """... each in one way."""
    s = free("s", 1)
    a, b = free("a", 0, extent - 1), free("b", 0, extent - 1)
    c, e = free("c", 0), free("e", 0)
    same = eq(add(mul(a, s), c), add(mul(b, s), e))
    alike = all_of([eq(a, b), eq(c, e)])
    return Statement(
        f"complement is disjoint, {extent}",
        implies(all_of([lt(c, s), lt(e, s), same]), alike),
        implies(all_of([le(c, s), lt(e, s), same]), alike),
    )


def involution(swizzle: Swizzle) -> Statement:
    at = free("at", 0, 2 * swizzle.period - 1)
    return Statement(f"{swizzle} twice", eq(swizzle.at(swizzle.at(at)), at), eq(swizzle.at(at), at))


STATEMENTS = [
    *(steps(*extents) for extents in ((2, 3), (6, 5), (3, 4, 2), (8, 2, 4))),
    *(deviation(below) for below in (2, 6, 12)),
    *(no_deviation(below) for below in (2, 6)),
    *(merge(extent) for extent in (2, 5)),
    *(covers(extent) for extent in (2, 3, 5)),
    *(disjoint(extent) for extent in (2, 3, 5)),
    *(involution(swizzle) for swizzle in (Swizzle(2, 0, 2), Swizzle(2, 0, -2), Swizzle(1, 2, -3), Swizzle(3, 3, 3))),
]


@pytest.mark.share(12)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_proved_for_all_values(statement: Statement, solver: str) -> None:
    assert get(solver).check(Query((negate(statement.goal),)), BUDGET) == Unsat(solver)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_the_false_neighbour_is_refuted(statement: Statement, solver: str) -> None:
    assert isinstance(get(solver).check(Query((negate(statement.false),)), BUDGET), Sat)
