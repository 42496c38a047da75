"""How many values of bound variables satisfy tests such as `128 * t + i < K`, by the different places that they take.

Each of several parts takes the places `step * t + r`, with t a number of its outermost range and r one of a table. If
the numbers of all tables differ and span less than the step, no place is taken twice: of those below K there are at
most as many as integers from the least place to K.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import Cmp, Cond, Const, Index, Sym, Symbol
from argus.core.walk import symbols

_LARGEST = 1 << 12


@frozen
class Range:
    """A bound variable in [low, high)."""

    variable: Symbol
    low: Index
    high: Index


@frozen
class Count:
    """At most `count` values. needs: what makes it this number exactly; None if that is not known."""

    count: Index
    needs: tuple[Cond, ...] | None


@frozen
class _Places:
    """The places `step * t + table` for t in [0, times), those below a bound."""

    bound: Index
    step: int
    times: Index
    table: tuple[int, ...]


def count_below(parts: Sequence[tuple[tuple[Range, ...], tuple[Cond, ...]]]) -> Count | None:
    """The number of values of the variables of all parts together; None if places are not known to differ.

    parts: ranges, the outermost first, and tests of their variables.
    """
    found = [_places(ranges, tests[0]) for ranges, tests in parts if ranges and tests]
    places = [each for each in found if each is not None]
    if len(places) < len(parts) or len({(each.bound, each.step) for each in places}) != 1:
        return None
    bound, step = places[0].bound, places[0].step
    taken = [number for each in places for number in each.table]
    least = min(taken)
    if len(set(taken)) < len(taken) or max(taken) - least >= step:
        return None
    exact = len(taken) == step and all(len(tests) == 1 for _, tests in parts)
    ends = dict.fromkeys(algebra.le(bound, algebra.add(algebra.mul(each.times, step), least)) for each in places)
    return Count(algebra.maximum(0, algebra.sub(bound, least)), tuple(ends) if exact else None)


def _places(ranges: tuple[Range, ...], test: Cond) -> _Places | None:
    outer, *inner = ranges
    if not isinstance(test, Cmp) or test.op != "<=" or outer.low is not algebra.const(0):
        return None
    terms, constant = linear_terms(algebra.sub(test.right, test.left))
    factors = {atom.symbol: -factor for atom, factor in terms if isinstance(atom, Sym)}
    variables = [each.variable for each in ranges]
    bound = algebra.linear([(a, f) for a, f in terms if not (isinstance(a, Sym) and a.symbol in variables)], 0)
    step = factors.get(outer.variable, 0)
    if step < 1 or not symbols(bound, outer.high).isdisjoint(variables):
        return None
    table = np.array([-constant - 1], np.int64)
    for each in inner:
        if not isinstance(each.low, Const) or not isinstance(each.high, Const):
            return None
        numbers = np.arange(each.low.value, each.high.value) * factors.get(each.variable, 0)
        if len(table) * len(numbers) > _LARGEST:
            return None
        table = np.add.outer(table, numbers).ravel()
    return _Places(bound, step, outer.high, tuple(map(int, table))) if len(table) else None
