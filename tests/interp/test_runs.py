"""Cached runs have the violations that the skipped runs would have."""

from __future__ import annotations

import pytest

from argus.interp.compiled_kernel import Prepared
from argus.interp.run import find_violations
from argus.interp.search.budget import STATEMENTS_PER_RUN, RunBudget
from argus.interp.search.runs import Runs
from argus.interp.search.schedule import ROLES_DIRECTED, EnabledSets, Schedule
from argus.interp.search.search import sizes_in_order
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


@pytest.mark.share(10)
@pytest.mark.parametrize("name", KERNELS)
def test_a_run_is_shared_by_schedules_with_the_same_choices(name: str) -> None:
    kernel = templates(REFUTED / f"{name}.py")[0].trace()
    shared = Prepared(kernel)
    found: list[tuple[Violation, ...]] = []
    for size in list(sizes_in_order(kernel, []))[:2]:
        for schedule in ROLES_DIRECTED:
            found.append(find_violations(shared, size, schedule))
            assert found[-1] == find_violations(Prepared(kernel), size, schedule), (size, schedule)
    assert len(set(found)) > 1
    assert len({id(each) for each in found}) < len(found)


def counted(runs: Runs, schedule: Schedule, met: EnabledSets, size: int = 4) -> bool:
    """Whether a run was made."""
    made: list[Schedule] = []

    def run() -> tuple[tuple[Violation, ...], EnabledSets, int]:
        made.append(schedule)
        return (), met, 300

    runs.violations((size,), schedule, run)
    return bool(made)


FIRST = Schedule(priority=("producer", "first", "rest", "engine"))
LATER = Schedule(priority=("producer", "rest", "first", "engine"))


def test_schedules_with_different_choices_are_run() -> None:
    runs = Runs()
    assert counted(runs, FIRST, frozenset([frozenset(["producer", "first"]), frozenset(["rest", "engine"])]))
    assert not counted(runs, LATER, frozenset())
    assert counted(runs, LATER, frozenset(), size=5)
    runs = Runs()
    assert counted(runs, FIRST, frozenset([frozenset(["first", "rest"])]))
    assert counted(runs, LATER, frozenset([frozenset(["first", "rest"])]))
    assert not counted(runs, FIRST, frozenset())


def test_schedules_that_differ_in_more_than_their_priority_are_run() -> None:
    runs = Runs()
    assert counted(runs, FIRST, frozenset())
    assert counted(runs, Schedule(priority=FIRST.priority, draw=1), frozenset())
    assert counted(runs, Schedule(priority=FIRST.priority, order="highest"), frozenset())
    assert counted(runs, Schedule(), frozenset())
    assert not counted(runs, FIRST, frozenset())


def test_a_cache_of_runs_is_bound_to_one_kernel() -> None:
    path = REFUTED / "wrong_slot.py"
    one, other = (templates(path)[0].trace() for _ in range(2))
    runs = Runs()
    Prepared(one, runs)
    Prepared(one, runs)
    with pytest.raises(AssertionError):
        Prepared(other, runs)


def test_long_runs_count_as_several() -> None:
    """What a search costs is known without a clock: a run is counted by the statements that it executed."""
    runs, budget = Runs(), RunBudget(10)
    assert counted(runs, FIRST, frozenset())
    assert runs.executed == 300
    assert not counted(runs, FIRST, frozenset())
    assert runs.executed == 300
    budget.charge(STATEMENTS_PER_RUN - 1)
    assert budget.left == 10
    budget.charge(12 * STATEMENTS_PER_RUN)
    assert not budget.spend()
