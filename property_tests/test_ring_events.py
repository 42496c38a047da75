"""Property: the barrier events that the proof extracts from a kernel with roles are those of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import TypeVar

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from argus.core.check import check
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.interp.search.schedule import Schedule, directed
from argus.interp.search.search import sizes_in_order
from argus.testing.mutants import spread_sizes
from property_tests.depth import examples
from property_tests.ring_events import compared, difference, reading
from property_tests.role_edits import mutate_roles
from property_tests.role_programs import ROLES
from property_tests.small import ringing

T = TypeVar("T")
CHANCE = Schedule("mixed", 4)


def held(kernel: Kernel, sizes: int, seed: int) -> str:
    """The first difference between runs and extracted events; empty if there is none, or if extraction is refused."""
    found = reading(kernel)
    if found is None or not compared(kernel):
        return ""
    schedules = directed(kernel)
    for size in spread_sizes(list(sizes_in_order(kernel)), sizes):
        for schedule in (schedules[seed % len(schedules)], CHANCE):
            try:
                why = difference(kernel, found, size, schedule)
            except (ArgusError, ZeroDivisionError):
                continue  # an undefined run has no events
            if why:
                return f"{why} at {size} under {schedule}"
    return ""


@cache
def compared_names() -> tuple[str, ...]:
    return tuple(sorted(name for name, kernel in ROLES.items() if compared(kernel)))


@pytest.mark.nightly
def test_most_shapes_are_compared() -> None:
    assert len(compared_names()) >= 12


@pytest.mark.share(6)
@pytest.mark.parametrize("name", sorted(ROLES))
def test_events_of_proved_kernels(name: str) -> None:
    assert held(ROLES[name], 4, 7) == ""


@st.composite
def rings(choosing: st.DrawFn) -> ringing.Ringing:
    def choose(options: Sequence[T]) -> T:
        return choosing(st.sampled_from(options))

    return ringing.draw(choose)


@pytest.mark.share(3)
@settings(max_examples=examples(60))
@given(program=rings(), seed=st.integers(0, 23))
def test_events_of_small_rings(program: ringing.Ringing, seed: int) -> None:
    kernel = program.kernel()
    event("read" if reading(kernel) is not None else "refused")
    assert held(kernel, 2, seed) == ""


@pytest.mark.share(3)
@settings(max_examples=examples(40))
@given(name=st.deferred(lambda: st.sampled_from(compared_names())), seed=st.integers(0, 1 << 32))
def test_events_of_edited_kernels(name: str, seed: int) -> None:
    mutant = mutate_roles(ROLES[name], Random(seed))  # noqa: S311 reason: an example, not a secret
    if mutant is not None and not check(mutant.kernel):
        assert held(mutant.kernel, 2, seed) == "", mutant.edits
