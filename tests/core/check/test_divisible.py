"""`always_multiple` against the remainders of counts at every small size that meets the assumptions."""

from __future__ import annotations

from itertools import product

import pytest
from attrs import evolve

from argus.core.algebra import add, ceil_div, eq, floordiv, le, mod, mul, sub, sym
from argus.core.check.divisible import always_multiple
from argus.core.index import Cond, Index, Symbol
from argus.core.ir import Assume, Kernel
from argus.core.walk import evaluate
from tests.core.texts import kernel_of

ROWS, BLOCKS = Symbol("M", "size", 0), Symbol("MB", "size", 0)
M, MB = sym(ROWS), sym(BLOCKS)
LIMIT = 70

MULTIPLES: tuple[tuple[Index, int, tuple[Cond, ...]], ...] = (
    (mul(2, ceil_div(M, 16)), 2, ()),
    (MB, 2, (eq(mod(MB, 2), 0),)),
    (MB, 2, (eq(mod(MB, 6), 4),)),
    (add(MB, 1), 2, (eq(mod(MB, 2), 1),)),
    (ceil_div(M, 8), 2, (eq(mod(ceil_div(M, 8), 4), 0),)),
    (floordiv(M, 8), 2, (eq(mod(M, 16), 0),)),
    (floordiv(M, 8), 2, (eq(M, mul(8, MB)), eq(mod(MB, 2), 0))),
    (mul(MB, ceil_div(M, 8)), 4, (eq(mod(MB, 4), 0),)),
)
NO_MULTIPLES: tuple[tuple[Index, int, tuple[Cond, ...]], ...] = (
    (MB, 2, ()),
    (MB, 4, (eq(mod(MB, 2), 0),)),
    (MB, 2, (eq(mod(MB, 3), 0),)),
    (MB, 2, (eq(mod(MB, 2), 1),)),
    (MB, 2, (le(2, MB),)),
    (add(MB, M), 2, (eq(mod(MB, 2), 0),)),
    (ceil_div(M, 8), 2, (eq(mod(M, 8), 0),)),
    (sub(M, MB), 2, (eq(M, mul(8, MB)),)),
)


def assuming(*conds: Cond) -> Kernel:
    return evolve(kernel_of(), prologue=tuple(Assume(cond) for cond in conds))


def exceptions(count: Index, of: int, conds: tuple[Cond, ...]) -> int:
    """At how many small sizes that meet the conditions the count is no multiple."""
    sizes = ({ROWS: m, BLOCKS: mb} for m, mb in product(range(LIMIT), repeat=2))
    met = [each for each in sizes if all(evaluate(cond, each) for cond in conds)]
    assert met
    return sum(evaluate(mod(count, of), each) != 0 for each in met)


@pytest.mark.parametrize(("count", "of", "conds"), MULTIPLES)
def test_a_count_follows_from_assumptions(count: Index, of: int, conds: tuple[Cond, ...]) -> None:
    assert exceptions(count, of, conds) == 0
    assert always_multiple(assuming(*conds), count, of)


@pytest.mark.parametrize(("count", "of", "conds"), NO_MULTIPLES)
def test_a_count_with_exceptions_is_not_taken_for_a_multiple(count: Index, of: int, conds: tuple[Cond, ...]) -> None:
    assert exceptions(count, of, conds) > 0
    assert not always_multiple(assuming(*conds), count, of)
