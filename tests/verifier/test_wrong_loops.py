"""Sums in loops that begin, end, turn or wrap around wrongly are not proved; what is proved is right in runs."""

# ruff: noqa: UP037
# Reason: the name of a size is a text.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false, reportGeneralTypeIssues=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# Reason: elements are values only while a formula is made.

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.interp.interpret import interpret
from argus.interp.search.search import sizes_in_order
from argus.language import (
    Int,
    Tensor,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    f32,
    kernel,
    load,
    loop,
    maximum,
    minimum,
    registers,
    sm_90a,
    spread,
    total,
)
from argus.runtime.run import inputs_of
from argus.verifier.claimed_formulas import claimed_outputs
from argus.verifier.kernel import verify


@frozen
class Sizes:
    """A and B: sizes of no tensor. T: columns."""

    A: Any
    B: Any
    T: Any


Ranges = Callable[[Sizes], Iterable[Any]]
Place = Callable[[Any, Sizes], Any]
Numbers = Callable[[Sizes], Any]
Conditions = Callable[[Sizes], tuple[Any, ...]]


def sums(ranges: Ranges, place: Place, claimed: Numbers, assumed: Conditions) -> Kernel:
    """The sum of X[r, place(k)] over loops, claimed to be that of X[r, j] over some numbers of columns."""

    @kernel(target=sm_90a, threads=32)
    def summed(X: Tensor["S T", f32], Y: Tensor["S", f32], *, A: Int, B: Int) -> None:
        S, T = X.shape
        sizes = Sizes(A, B, T)
        assume(S < 1 << 20, T >= 2, T < 1 << 20, A < 1 << 20, B >= 1, B < 1 << 20, *assumed(sizes))
        (m,) = block_id((ceil_div(S, 32),))
        by = spread((32, 1), threads=32, vector=1)
        found = registers(f32, by.axis(0))
        found[:] = 0.0
        for each in ranges(sizes):
            for k in each:
                at = place(k, sizes)
                rows = X.gather((32, 1), lambda r, _, at=at: (32 * m + r, at), outside=0)
                found[:] = found + load(rows, by, edge=0).sum(1)
        copy(found, Y.tile((32,), (m,)), edge=0)
        assert_equals(Y, lambda r: total(lambda j: X[r, j], over=claimed(sizes)))

    return summed.trace()


def one(count: Numbers) -> Ranges:
    return lambda s: (loop(count(s)),)


def always(_: Sizes) -> tuple[()]:
    return ()


Case = tuple[Ranges, Place, Numbers, Conditions]
ALL: Numbers = lambda s: s.T  # noqa: E731 reason: as short as those beside it
OWN: Place = lambda k, _: k  # noqa: E731 reason: as above
WITHIN: Conditions = lambda s: (s.A <= s.T, s.B <= s.T)  # noqa: E731 reason: as above
TWO: Ranges = lambda s: (loop(s.A), loop(s.A, s.B))  # noqa: E731 reason: as above
RIGHT: dict[str, Case] = {
    "two ranges in order": (TWO, OWN, lambda s: s.B, lambda s: (s.A <= s.B, s.B <= s.T)),
    "two ranges to the greater end": (TWO, OWN, lambda s: maximum(s.A, s.B), WITHIN),
    "wraps around": (one(ALL), lambda k, s: (k + s.A) % s.T, ALL, always),
    "wraps around a part": (one(lambda s: s.B), lambda k, s: (k + s.A) % s.B, lambda s: s.B, WITHIN),
    "from the last on": (lambda s: (loop(s.T - 1, -1, step=-1),), OWN, ALL, always),
    "from the last on, then the others": (
        lambda s: (loop(s.B - 1, s.A - 1, step=-1), loop(minimum(s.A, s.B) - 1, -1, step=-1)),
        OWN,
        lambda s: s.B,
        WITHIN,
    ),
}
WRONG: dict[str, Case] = {
    "two ranges in any order": (TWO, OWN, lambda s: s.B, WITHIN),
    "wraps around one early": (one(ALL), lambda k, s: (k + s.A) % (s.T - 1), ALL, always),
    "ends one early": (one(lambda s: s.T - 1), lambda k, s: (k + s.A) % s.T, ALL, always),
    "ends one late": (one(lambda s: s.T + 1), lambda k, s: (k + s.A) % s.T, ALL, always),
    "every second place, wrapped around": (one(ALL), lambda k, s: (2 * k + s.A) % s.T, ALL, always),
    "an offset that grows": (one(ALL), lambda k, s: (k + k // 2) % s.T, ALL, always),
    "a part of the columns": (one(lambda s: s.B), lambda k, s: (k + s.A) % s.B, ALL, WITHIN),
    "a part, too often": (one(ALL), lambda k, s: (k + s.A) % s.B, lambda s: s.B, WITHIN),
    "from the last but to the second": (lambda s: (loop(s.T - 1, 0, step=-1),), OWN, ALL, always),
    "ranges that overlap": (
        lambda s: (loop(s.B - 1, s.A - 1, step=-1), loop(s.A - 1, -1, step=-1)),
        OWN,
        lambda s: s.B,
        WITHIN,
    ),
    "ranges with a gap": (
        lambda s: (loop(s.B - 1, s.A, step=-1), loop(minimum(s.A, s.B) - 1, -1, step=-1)),
        OWN,
        lambda s: s.B,
        WITHIN,
    ),
    "one column before, of every second": (
        lambda s: (loop(1, s.T, step=2),),
        lambda k, _: k - 1,
        ALL,
        always,
    ),
}
NO_RUNS = evolve(Budget(), runs=0)


@pytest.mark.nightly
@pytest.mark.parametrize("name", WRONG)
def test_a_sum_of_other_elements_is_not_proved(name: str) -> None:
    made = sums(*WRONG[name])
    assert not isinstance(verify(made, solver="z3", budget=NO_RUNS).verdict, Proved)
    assert not all(agrees(made, sizes) for sizes in some_sizes(made))


@pytest.mark.nightly
@pytest.mark.parametrize("name", RIGHT)
def test_a_sum_of_the_claimed_elements_is_proved(name: str) -> None:
    made = sums(*RIGHT[name])
    assert isinstance(verify(made, solver="z3", budget=NO_RUNS).verdict, Proved)
    assert all(agrees(made, sizes) for sizes in some_sizes(made))


def some_sizes(made: Kernel) -> list[dict[str, int]]:
    return [dict(each) for each in islice(sizes_in_order(made), 60) if all(number < 70 for number in each.values())]


def agrees(made: Kernel, sizes: dict[str, int]) -> bool:
    """Whether a run gives what is claimed."""
    arrays = inputs_of(made, sizes, 0)
    found = interpret(made, *arrays.values(), tags=False, given_sizes=sizes)["Y"].astype(np.float64)
    claims = claimed_outputs(made, arrays, sizes, 0)
    return all(np.allclose(found[each.rows], each.expected, rtol=1e-3, atol=1e-3) for each in claims)
