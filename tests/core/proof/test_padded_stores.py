"""Padding is not stored inside a tensor: a bound that moves with the stored index, and elements below it."""

from __future__ import annotations

import numpy as np

from argus.core import algebra
from argus.core.index import Cond, Index, Symbol
from argus.core.proof.dataflow.access import Access
from argus.core.proof.dataflow.separable_index import Separable
from argus.core.proof.outputs.padded_stores import no_padding_obligation
from argus.core.proof.outputs.stored import stores_of
from argus.core.proof.values.content import Inside
from argus.solvers.choice import resolve
from argus.solvers.session.session import Session
from argus.verifier.kernel import analyse
from tests.core.proof.test_outputs import a_row_a_block, moved

N = algebra.sym(Symbol("N", "size", 0))
BLOCK = algebra.sym(Symbol("block", "block", 0))
ROW = np.arange(8)[None, :]


def stored() -> Access:
    (flow,) = analyse(moved(a_row_a_block), Session(resolve("z3"))).flows
    (output,) = (each for each in flow.timeline.kernel.parameters if stores_of(flow, each))
    return stores_of(flow, output)[0]


def asked(by: int, *, place: int = 0) -> Cond:
    """What is asked of elements `place + by` of N + by, stored at `place` of N."""
    at = Separable(algebra.add(algebra.mul(BLOCK, 8), place), ROW)
    bound = Inside(Separable(algebra.add(at.base, by), ROW), algebra.add(N, by))
    return no_padding_obligation(stored(), (at,), bound, (), (N,)).goal


def test_what_is_below_the_extent_where_it_is_stored_is_an_element() -> None:
    assert asked(0) is algebra.TRUE
    assert asked(1) is algebra.TRUE


def test_an_element_before_the_first_is_padding() -> None:
    """Y[i] = X[i - 1] stores what X has before its first element."""
    assert asked(-1) not in (algebra.TRUE, algebra.FALSE)
    assert asked(-1, place=1) is algebra.TRUE


def asked_of_a_mask(coordinate: Separable, extent: Index) -> Cond:
    """What is asked of elements with one bound alone, stored at any place of N."""
    place = Separable(algebra.mul(BLOCK, 8), ROW)
    return no_padding_obligation(stored(), (place,), Inside(coordinate, extent, open=True), (), (N,)).goal


def test_a_bound_alone_is_that_of_the_place() -> None:
    base = algebra.mul(BLOCK, 8)
    assert asked_of_a_mask(Separable(base, ROW), N) is algebra.TRUE
    assert asked_of_a_mask(Separable(base, ROW - 1), N) is not algebra.TRUE
    assert asked_of_a_mask(Separable(base, ROW), algebra.sub(N, 1)) is not algebra.TRUE


def test_no_place_is_before_the_first() -> None:
    """-place < 1, and -place - 1 < 1, hold of what is stored, but -place + 1 < 1 does not of the first element."""
    base = algebra.mul(BLOCK, -8)
    assert asked_of_a_mask(Separable(base, -ROW), algebra.const(1)) is algebra.TRUE
    assert asked_of_a_mask(Separable(base, -ROW - 1), algebra.const(1)) is algebra.TRUE
    assert asked_of_a_mask(Separable(base, 1 - ROW), algebra.const(1)) is not algebra.TRUE
    assert asked_of_a_mask(Separable(base, ROW), algebra.const(1)) is not algebra.TRUE
