"""Bounds of values: compared in any order, left out where every element is within, kept over a loop as a guess."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.index import Index, Symbol
from argus.core.ir import For
from argus.core.proof.dataflow.bounds import covers_bounds, equal_bounds, inherit_bounds
from argus.core.proof.dataflow.separable_index import Separable, separable
from argus.core.proof.dataflow.timeline import Loop
from argus.core.proof.values.content import Data, Inside
from argus.core.proof.values.recognisers.splits import always
from argus.core.span import Span

N, T, S = (algebra.sym(Symbol(name, "size", 0, None)) for name in "NTS")
K = Symbol("k", "loop")
COLUMN = np.arange(4)[None, :] + np.zeros((2, 1), np.int64)


def masked(base: Index, extent: int = 1) -> Inside:
    """Of elements in column j: base + j < extent."""
    return Inside(separable(base, COLUMN), algebra.const(extent), open=True)


def loop(start: Index, stop: Index) -> Loop:
    return Loop(For(K, start, stop, 1, (), span=Span(())))


def test_the_order_of_bounds_is_of_no_weight() -> None:
    one = Data({}, (masked(algebra.sub(N, T)), masked(algebra.sub(N, S))))
    two = Data({}, (masked(algebra.sub(N, S)), masked(algebra.sub(N, T))))
    assert equal_bounds(one, two) is algebra.TRUE
    assert equal_bounds(one, evolve(two, fill=1.0)) is None


def test_a_bound_is_none_only_where_every_element_is_within() -> None:
    bound = masked(algebra.sub(N, T))
    goal = equal_bounds(Data({}, (bound,), fill=0.0), Data({}, (), fill=float("nan")))
    # The greatest column is 3: N - T + 3 < 1.
    assert goal is algebra.all_of(algebra.lt(algebra.add(algebra.sub(N, T), at), 1) for at in (0, 3))


def test_bounds_that_differ_are_alike_where_their_coordinates_are() -> None:
    one, two = Data({}, (masked(algebra.sub(N, T)),)), Data({}, (masked(algebra.sub(N, S)),))
    goal = equal_bounds(one, two)
    assert goal not in (None, algebra.TRUE, algebra.FALSE)
    other = Data({}, (Inside(separable(algebra.sub(N, T), 2 * COLUMN), algebra.const(1), open=True),))
    assert equal_bounds(one, evolve(other, fill=float("nan"))) is not algebra.TRUE


def test_a_guess_may_say_less_and_not_more() -> None:
    tight, loose = Data({}, ()), Data({}, (), loose=(masked(algebra.sub(N, T)),))
    assert covers_bounds(tight, loose) is algebra.TRUE
    assert covers_bounds(loose, tight) is not algebra.TRUE


def test_masks_follow_the_name_that_moves_with_the_loop() -> None:
    before = algebra.mul(N, 4)
    entry = Data({"t": Separable(before, COLUMN)}, (masked(algebra.sub(before, T)),), fill=0.0)
    head = algebra.mul(algebra.sym(K), 4)
    guess = Data({"t": Separable(head, COLUMN)}, (), fill=float("nan"))
    (kept,) = inherit_bounds(entry, guess, loop(N, T)).inside
    assert isinstance(kept.coordinate, Separable)
    assert kept.coordinate.base is algebra.sub(head, T)
    assert np.array_equal(kept.coordinate.table, COLUMN)
    still = evolve(guess, record={"t": Separable(before, COLUMN)})
    assert inherit_bounds(entry, still, loop(N, T)).inside == ()


@pytest.mark.parametrize("lowest", [-9, -4])
def test_a_bound_by_symbols_may_fail_whatever_its_numbers_are(lowest: int) -> None:
    below = Inside(Separable(algebra.sub(N, T), COLUMN + lowest), algebra.const(1), open=True)
    assert not always(below)
    assert always(evolve(below, coordinate=Separable(algebra.const(0), COLUMN + lowest)))
