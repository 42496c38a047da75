"""A new run of a problem begins with what earlier runs of the journal have found."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from argus.policy.bandit import CONSTANT, Bandit, WeightPrior
from argus.policy.planner import Choice, Situation
from argus.search.earlier_runs import earlier_runs, with_earlier_runs
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Ended, Judged, Proposed, Started
from argus.search.journal import Journal

OPTIONS = tuple(Choice(name, (), (1.0, wide)) for name, wide in (("slow", 0.0), ("fast", 1.0), ("other", 2.0)))
BEFORE = Situation("sm_90a", "gemm:8x8x8:bf16", (CONSTANT, "wide"), 100.0, "tensor", OPTIONS)
STARTED = Started("gemm:8x8x8:bf16", "sm_90a", "random", 5, 100.0, "tensor", 3, reward="predicted")


def judged(name: str, took: float | None) -> Judged:
    outcome = "timed" if took is not None else "lost" if name == "other" else "refuted"
    return Judged(Judgement(name, outcome, "timing", microseconds=took))


def with_run(journal: Journal, started: Started, *judgements: Judged) -> str:
    name = journal.begin(started)
    for each in judgements:
        journal.append(name, Proposed(each.judgement.name, (), 0.5, "random"))
        journal.append(name, each)
    journal.append(name, Ended("trials spent"))
    return name


def test_a_run_begins_with_the_best_of_earlier_ones_and_their_times(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        first = with_run(journal, STARTED, judged("slow", 300.0), judged("fast", 150.0), judged("other", None))
        found = earlier_runs(journal, STARTED)
        begins = with_earlier_runs(journal, evolve(STARTED, earlier=found), BEFORE)

    assert found == ((first, 8),)
    assert begins.first == "fast"
    assert [(each.choice.name, each.microseconds) for each in begins.earlier] == [("slow", 300.0), ("fast", 150.0)]
    assert begins.options == BEFORE.options
    bandit = Bandit({CONSTANT: WeightPrior(-1.0, 0.5)})
    assert bandit.propose(bandit.start(begins, 0))[0].choice.name == "fast"


def test_runs_of_other_problems_and_times_say_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        with_run(journal, evolve(STARTED, problem="gemm:16x16x16:bf16"), judged("slow", 300.0))
        with_run(journal, evolve(STARTED, reward="measured"), judged("slow", 300.0))
        with_run(journal, evolve(STARTED, target="gfx942"), judged("slow", 300.0))
        with_run(journal, STARTED)
        found = earlier_runs(journal, STARTED)

        assert found == ()
        assert with_earlier_runs(journal, STARTED, BEFORE) == BEFORE


def test_what_an_earlier_run_finds_later_does_not_change_a_run_that_has_begun(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        first = with_run(journal, STARTED, judged("slow", 300.0))
        begun = evolve(STARTED, earlier=earlier_runs(journal, STARTED))
        before = with_earlier_runs(journal, begun, BEFORE)
        journal.append(first, judged("fast", 150.0))

        assert with_earlier_runs(journal, begun, BEFORE) == before
        second = journal.begin(begun)
        assert journal.begun(second) == begun
