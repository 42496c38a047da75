"""Semantics of mbarriers and named barriers: arrivals, transaction bytes, parity waits."""

from __future__ import annotations

import pytest

from argus.core.barriers import Mbarrier, NamedBarrier, arrive, arrive_named, complete_tx, passes


def test_a_phase_takes_all_arrivals_and_all_bytes() -> None:
    barrier = arrive(Mbarrier(1), expected=96)
    assert not passes(barrier, 0)

    barrier = complete_tx(barrier, 64)
    assert not passes(barrier, 0)
    barrier = complete_tx(barrier, 32)

    assert (barrier.phases, barrier.arrived, barrier.bytes) == (1, 0, 0)
    assert passes(barrier, 0)


def test_bytes_may_land_before_they_are_announced() -> None:
    barrier = complete_tx(Mbarrier(1), 64)
    assert barrier.bytes == -64

    assert arrive(barrier, expected=64).phases == 1


def test_bytes_that_were_never_announced_hold_the_phase() -> None:
    assert arrive(complete_tx(Mbarrier(1), 64)).phases == 0


def test_a_fresh_barrier_is_past_phase_minus_one() -> None:
    assert passes(Mbarrier(2), -1)
    assert not passes(Mbarrier(2), 0)


@pytest.mark.parametrize("phases", range(4))
def test_a_wait_cannot_distinguish_phases_two_apart(phases: int) -> None:
    barrier = Mbarrier(1, phases)

    assert passes(barrier, phases - 1)
    assert passes(barrier, phases + 1)
    assert not passes(barrier, phases)


def test_too_many_arrivals_are_seen() -> None:
    assert arrive(Mbarrier(2), 3).overrun
    assert not arrive(Mbarrier(2), 1).overrun


def test_a_named_barrier_restarts_after_each_round() -> None:
    half = arrive_named(NamedBarrier(256), 128)
    assert (half.generation, half.arrived) == (0, 128)
    assert arrive_named(half, 128) == NamedBarrier(256, 0, 1)
