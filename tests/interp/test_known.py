"""Runs that are not made again violate what they would have violated."""

from __future__ import annotations

import pytest

from argus.interp.known import Known
from argus.interp.prepared import Prepared
from argus.interp.run import violated
from argus.interp.schedule import ROLES_DIRECTED, Met, Schedule
from argus.interp.search import sizes_in_order
from argus.interp.violation import Violation
from property_tests.programs import CORPUS, templates

REFUTED = CORPUS / "refuted"


KERNELS = (
    "wrong_slot",
    "real_cutracer_106_missing",
    "two_rings_out_of_step",
    "lag_of_all_stages",
    "cluster_masks_disagree",
)
"""What they violate depends on the schedule."""


@pytest.mark.parametrize("name", KERNELS)
def test_a_run_stands_for_others_that_choose_alike(name: str) -> None:
    kernel = templates(REFUTED / f"{name}.py")[0].trace()
    shared = Prepared(kernel)
    found: list[tuple[Violation, ...]] = []
    for size in list(sizes_in_order(kernel, []))[:2]:
        for schedule in ROLES_DIRECTED:
            found.append(violated(shared, size, schedule))
            assert found[-1] == violated(Prepared(kernel), size, schedule), (size, schedule)
    assert len(set(found)) > 1
    assert len({id(each) for each in found}) < len(found)


def counted(known: Known, schedule: Schedule, met: Met, size: int = 4) -> bool:
    """Whether a run was made."""
    made: list[Schedule] = []

    def run() -> tuple[tuple[Violation, ...], Met]:
        made.append(schedule)
        return (), met

    known.violated((size,), schedule, run)
    return bool(made)


FIRST = Schedule(priority=("producer", "first", "rest", "engine"))
LATER = Schedule(priority=("producer", "rest", "first", "engine"))


def test_schedules_that_choose_otherwise_among_those_who_could_move_are_run() -> None:
    known = Known()
    assert counted(known, FIRST, frozenset([frozenset(["producer", "first"]), frozenset(["rest", "engine"])]))
    assert not counted(known, LATER, frozenset())
    assert counted(known, LATER, frozenset(), size=5)
    known = Known()
    assert counted(known, FIRST, frozenset([frozenset(["first", "rest"])]))
    assert counted(known, LATER, frozenset([frozenset(["first", "rest"])]))
    assert not counted(known, FIRST, frozenset())


def test_schedules_that_differ_in_more_than_their_priority_are_run() -> None:
    known = Known()
    assert counted(known, FIRST, frozenset())
    assert counted(known, Schedule(priority=FIRST.priority, draw=1), frozenset())
    assert counted(known, Schedule(priority=FIRST.priority, order="highest"), frozenset())
    assert counted(known, Schedule(), frozenset())
    assert not counted(known, FIRST, frozenset())
