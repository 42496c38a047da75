"""Ends of ranges, remainders and orders of loops: each law against numbers, and what it must not take."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import product

import pytest

from argus.core import algebra
from argus.core.algebra import add, ceil_div, eq, floordiv, lt, maximum, minimum, mod, mul, sub, sym
from argus.core.index import Cond, Index, Symbol
from argus.core.values import ends, strides
from argus.core.values.equality import Equal, equal
from argus.core.values.expr import Expr, ReduceOp, element, fn, reduce_
from argus.core.values.nests import ordered
from argus.core.walk import evaluate

_NAMES = (Symbol("a", "size", 1), Symbol("b", "size", 0), Symbol("v", "fresh"))
_A, _B, _V = map(sym, _NAMES)
_AT = [dict(zip(_NAMES, numbers, strict=True)) for numbers in product((1, 2, 5, 8), (0, 1, 3, 7), (-3, 0, 2, 5))]


def _drawn(drawn: random.Random, depth: int = 3) -> Index:
    if depth == 0:
        return drawn.choice((_A, _B, _V, algebra.const(drawn.randint(-4, 4))))
    one, two = _drawn(drawn, depth - 1), _drawn(drawn, depth - 1)
    d = drawn.choice((2, 3, 4))
    ways = (add(one, two), sub(one, two), minimum(one, two), maximum(one, two), mul(one, d), floordiv(one, d))
    more = (mul(ceil_div(one, d), d), mod(one, d), mul(one, _A), mul(floordiv(one, _A), _A))
    return drawn.choice((*ways, *more))


def _numbers(index: Index | Cond) -> list[int]:
    return [int(evaluate(index, sizes)) for sizes in _AT]


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(8))
def test_ends_have_the_numbers_that_they_stand_for(seed: int) -> None:
    drawn = random.Random(seed)  # noqa: S311 reason: a seed makes failures repeatable
    for _ in range(12):
        a, b = _drawn(drawn), _drawn(drawn)
        x, y = _numbers(a), _numbers(b)
        low, high = ends.most_of(algebra.neg(a)), ends.most_of(a)
        first, rest = ends.apart(a)

        assert all((low is None or -low <= n) and (high is None or n <= high) for n in x)
        assert not ends.at_most(a, b) or all(n <= m for n, m in zip(x, y, strict=True))
        assert _numbers(ends.lesser(a, b)) == [min(n, m) for n, m in zip(x, y, strict=True)]
        assert _numbers(ends.greater(a, b)) == [max(n, m) for n, m in zip(x, y, strict=True)]
        assert x == _numbers(ends.end(a)) == _numbers(ends.tidy(a)) == _numbers(ends.whole(a))
        assert x == [n + m for n, m in zip(_numbers(first), _numbers(rest), strict=True)]
        for cond in (algebra.le(a, b), eq(a, b)):
            assert _numbers(ends.undivided(cond)) == _numbers(cond)


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", range(6))
def test_ranges_with_other_ends_have_the_same_numbers(seed: int) -> None:
    drawn = random.Random(seed)  # noqa: S311 reason: as above
    for _ in range(12):
        low, high = _drawn(drawn), _drawn(drawn)
        by, remainder = drawn.choice(((2, 0), (2, 1), (3, 2)))
        for sizes in _AT:
            whole = _range(low, high, sizes)
            shift = int(evaluate(_B, sizes))
            mine = [n for n in whole if (n + shift) % by == remainder]
            cut = ends.rounded(low, _B, by, remainder), ends.rounded(high, _B, by, remainder)
            turned = _range(*cut, sizes)

            assert whole == _range(*ends.clipped(low, high), sizes) or evaluate(algebra.lt(high, low), sizes)
            assert bool(whole) == bool(_range(*ends.unclipped(low, high), sizes))
            assert mine == [n for n in turned if (n + shift) % by == remainder]
            assert [n * by for n in whole] == [
                n for n in _range(mul(low, by), strides.times(high, by), sizes) if n % by == 0
            ]


def _range(low: Index, high: Index, sizes: Mapping[Symbol, int]) -> list[int]:
    return list(range(int(evaluate(low, sizes)), int(evaluate(high, sizes))))


# -- loops ---------------------------------------------------------------------------------------------

_N, _T = (sym(Symbol(name, "size", 1)) for name in "NT")
_I, _J, _L = (Symbol(name, "fresh") for name in "ijl")


def _z(i: Index, j: Index) -> Expr:
    return element("Z", i, j)


def _x(i: Index) -> Expr:
    return element("X", i)


def _pairs_of_rows(body_of_a_row: Expr) -> Expr:
    """A sum over pairs of rows of sums of rows, the last pair cut off."""
    pair = reduce_("sum", _L, 0, 2, body_of_a_row, lt(add(mul(sym(_I), 2), sym(_L)), _N))
    return reduce_("sum", _I, 0, ceil_div(_N, 2), pair)


def test_loops_that_are_exchanged_twice_capture_no_variable() -> None:
    row = reduce_("sum", _J, 0, _T, _z(add(mul(sym(_I), 2), sym(_L)), sym(_J)))
    meant = reduce_("sum", _I, 0, _N, reduce_("sum", _J, 0, _T, _z(sym(_I), sym(_J))))
    diagonal = reduce_("sum", _J, 0, _T, _z(sym(_J), sym(_J)))

    assert isinstance(equal(_pairs_of_rows(row), meant), Equal)
    assert not isinstance(equal(_pairs_of_rows(row), meant + diagonal), Equal)
    assert not isinstance(equal(_pairs_of_rows(diagonal), meant), Equal)


@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_an_inner_variable_stays_within_its_range(op: ReduceOp) -> None:
    """Lanes outside, steps inside: a shift of the lane by the step would take the step out of its loop."""
    lanes = reduce_(op, _L, 0, 4, reduce_(op, _J, 0, _N, _x(add(mul(sym(_J), 4), sym(_L)))))

    assert isinstance(equal(lanes, reduce_(op, _J, 0, mul(_N, 4), _x(sym(_J)))), Equal)
    assert not isinstance(equal(lanes, reduce_(op, _J, 0, mul(_N, 3), _x(sym(_J)))), Equal)


def test_loops_whose_ranges_depend_on_each_other_keep_their_order() -> None:
    triangle = reduce_("sum", _L, 0, 4, reduce_("sum", _J, 0, sym(_L), _x(add(mul(sym(_J), 4), sym(_L)))))

    assert ordered(triangle) is triangle


@pytest.mark.parametrize("size", ["B", "C", "P", "T", "W"])
def test_an_order_of_loops_does_not_depend_on_where_their_ranges_start(size: str) -> None:
    """Which of two maxima is outside: the range of the lanes starts at 0 outside, and at the sum's end inside."""
    at, columns = add(mul(sym(_I), 2), sym(_L)), sym(Symbol(size, "size", 1))
    row = reduce_("sum", _I, 0, ceil_div(_N, 2), _z(at, sym(_J)) * _x(sym(_J)), lt(at, _N))
    one = reduce_("max", _J, 0, columns, reduce_("max", _L, 0, 2, row))
    other = reduce_("max", _L, 0, 2, reduce_("max", _J, 0, columns, row))

    assert isinstance(equal(one, other), Equal)
    assert not isinstance(equal(one, reduce_("max", _J, 0, columns, row)), Equal)


def test_a_last_chunk_that_is_not_cut_off_is_not_the_rest() -> None:
    at = add(mul(sym(_I), 8), sym(_J))
    chunks = reduce_("max", _I, 0, ceil_div(_N, 8), reduce_("max", _J, 0, 8, _x(at)))
    cut = reduce_("max", _I, 0, ceil_div(_N, 8), reduce_("max", _J, 0, 8, _x(at), lt(at, _N)))
    meant = reduce_("max", _J, 0, _N, _x(sym(_J)))

    assert isinstance(equal(cut, meant), Equal)
    assert not isinstance(equal(chunks, meant), Equal)


@pytest.mark.parametrize("op", ["sum", "max"])
def test_even_and_odd_places_are_all_and_twice_the_even_ones_are_not(op: ReduceOp) -> None:
    even = reduce_(op, _J, 0, ceil_div(_N, 2), _x(mul(sym(_J), 2)))
    odd = reduce_(op, _J, 0, floordiv(_N, 2), _x(add(mul(sym(_J), 2), 1)))
    every = reduce_(op, _J, 0, _N, _x(sym(_J)))
    join = "add" if op == "sum" else "max"

    assert isinstance(equal(fn(join, even, odd), every), Equal)
    assert not isinstance(equal(fn(join, even, even), every), Equal)


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(4))
def test_an_operand_that_the_others_decide_is_left_out_where_that_is_known(seed: int) -> None:
    drawn, shorter = random.Random(seed), 0  # noqa: S311 reason: as above
    for _ in range(40):
        join = drawn.choice((minimum, maximum))
        whole = join(join(_drawn(drawn, 1), _drawn(drawn, 1)), _drawn(drawn, 1))
        for cond in ends.orders_of(whole):
            found = ends.least_of(whole, {cond})
            shorter += found is not whole
            numbers = zip(_numbers(cond), _numbers(whole), _numbers(found), strict=True)
            assert all(n == m for known, n, m in numbers if known)

    assert shorter > 20


def test_known_orders_leave_the_least_operand_of_a_nested_minimum() -> None:
    whole = minimum(_A, minimum(mul(_B, 8), _V))

    assert ends.least_of(whole, {algebra.le(_V, _A), algebra.le(_V, mul(_B, 8))}) is _V
    assert ends.operands(ends.least_of(whole, {algebra.le(_V, _A)}), "min") == {mul(_B, 8), _V}
    assert ends.operands(ends.least_of(whole, {algebra.le(_A, _B)}), "min") == {_A, mul(_B, 8), _V}
    assert ends.least_of(maximum(_A, _V), {algebra.le(_V, _A)}) is _A
    assert ends.least_of(maximum(_A, _V), {algebra.le(_A, _V), algebra.le(_V, _A)}) in (_A, _V)
