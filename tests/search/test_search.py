from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest
from attrs import define, field

from argus.core.diagnostic import ArgusError
from argus.policy.bandit import CONSTANT, Bandit, WeightPrior
from argus.policy.baselines import Exhaustive, Random
from argus.policy.planner import Choice, Planner, Situation
from argus.policy.stopping import Rule
from argus.search.evaluation.evaluators import InProcess
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Ended, Event, Judged, Proposed, Started
from argus.search.journal import Journal
from argus.search.loop import Limits, Search, replay_events

NAMES = (CONSTANT, "wide", "deep")
OPTIONS = tuple(
    Choice(f"{wide}{deep}", (), (1.0, wide / 4, deep / 4), (("wide", wide), ("deep", deep)))
    for wide in range(5)
    for deep in range(5)
)
SITUATION = Situation("sm_90a", "gemm:8x8x8:bf16", NAMES, 100.0, "tensor", OPTIONS)
STARTED = Started("gemm:8x8x8:bf16", "sm_90a", "bandit", 5, 100.0, "tensor", 25)
PLANNERS: tuple[Planner, ...] = (Bandit({CONSTANT: WeightPrior(-2.0, 0.5)}), Random(), Exhaustive())


def judge(name: str, text: str = "") -> Judgement:
    """Fastest at 32; rejected if both knobs are large."""
    del text
    wide, deep = int(name[0]), int(name[1])
    if wide + deep > 6:
        return Judgement(name, "over limits", "invariants", "I22: too large")
    return Judgement(name, "timed", "timing", microseconds=150.0 + 20 * (wide - 3) ** 2 + 10 * (deep - 2) ** 2)


def went(
    planner: Planner, limits: Limits, events: Sequence[Event] = (), judged: Callable[[str, str], Judgement] = judge
) -> list[Event]:
    """Continue a run from these events to its end."""
    before = replay_events(events, planner, SITUATION, 5)
    found: list[Event] = []
    search = Search(planner, InProcess(judged), limits, before.state, found.append)
    assert list(search.go(before.under_way)) == found
    return found


@pytest.mark.parametrize("planner", PLANNERS, ids=lambda each: each.name)
def test_a_run_cut_off_anywhere_resumes_identically(planner: Planner) -> None:
    whole = went(planner, Limits(trials=12))

    assert sum(isinstance(each, Judged) for each in whole) == 12
    for cut in range(len(whole) - 1):
        assert whole[:cut] + went(planner, Limits(trials=12), whole[:cut]) == whole


def test_the_journal_records_all_events(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        name = journal.begin(STARTED)
        before = replay_events((), PLANNERS[0], SITUATION, 5)
        search = Search(
            PLANNERS[0], InProcess(judge), Limits(trials=6), before.state, lambda event: journal.append(name, event)
        )
        told = list(search.go())

        assert journal.events(name) == (STARTED, *told)
        assert replay_events(journal.events(name), PLANNERS[0], SITUATION, 5).state == search.state


def test_every_design_is_judged_once_and_then_nothing_is_left() -> None:
    found = went(Random(), Limits())
    names = [each.judgement.name for each in found if isinstance(each, Judged)]

    assert sorted(names) == sorted(each.name for each in OPTIONS)
    assert found[-1] == Ended("nothing left")


def test_a_search_stops_near_the_bound() -> None:
    found = went(Exhaustive(), Limits(rule=Rule(epsilon=0.6)))

    assert found[-1] == Ended("near the bound")
    last = [each.judgement for each in found if isinstance(each, Judged)][-1]
    assert last.microseconds is not None
    assert last.microseconds <= 160.0


def test_a_search_stops_when_nothing_is_gained() -> None:
    found = went(Exhaustive(), Limits(rule=Rule(attempts=6)))

    assert found[-1] == Ended("no gain")
    assert len(found) < 2 * len(OPTIONS)


def test_a_search_stops_when_its_time_is_spent() -> None:
    ticks = iter(range(1000))
    before = replay_events((), Random(), SITUATION, 0)
    search = Search(
        Random(), InProcess(judge), Limits(seconds=5.0), before.state, lambda _: None, clock=lambda: float(next(ticks))
    )

    assert list(search.go())[-1] == Ended("time spent")


@define
class Slow(InProcess):
    """An evaluator whose judgements exceed the time limit; records the remaining time of each call."""

    judge: Callable[[str, str], Judgement] = judge
    workers: int = 2
    asked: list[float | None] = field(factory=list[float | None])
    clock: list[float] = field(factory=lambda: [0.0])

    def result(self, name: str, future: Future[Judgement], left: float | None = None) -> Judgement | None:
        self.asked.append(left)
        if len(self.asked) < 3:
            self.clock[0] += 1.0
            return super().result(name, future, left)
        self.clock[0] += left or 0.0
        return None


def test_pending_candidates_are_cancelled_at_the_time_limit_and_judged_after_a_resume() -> None:
    planner, slow = PLANNERS[0], Slow()
    found: list[Event] = []
    before = replay_events((), planner, SITUATION, 5)
    search = Search(planner, slow, Limits(seconds=10.0), before.state, found.append, clock=lambda: slow.clock[0])
    assert list(search.go()) == found

    assert slow.asked == [10.0, 9.0, 8.0]
    assert found[-1] == Ended("time spent")
    assert [type(each) for each in found].count(Judged) == 2
    waiting = replay_events(found, planner, SITUATION, 5).under_way
    assert len(waiting) == 2
    rest = went(planner, Limits(trials=4), found)
    assert [each.judgement.name for each in rest if isinstance(each, Judged)] == list(waiting)


def test_the_time_limit_starts_at_begun() -> None:
    before = replay_events((), Random(), SITUATION, 0)
    search = Search(
        Random(), InProcess(judge), Limits(seconds=5.0), before.state, lambda _: None, clock=lambda: 9.0, begun=3.0
    )

    assert list(search.go()) == [Ended("time spent")]


def test_an_event_of_another_version_is_reported() -> None:
    with pytest.raises(ArgusError) as raised:
        replay_events([Proposed("99", (), 0.5, "bandit")], Random(), SITUATION, 0)

    assert raised.value.diagnostic.code == "E904"


def test_an_interrupted_run_resumes_with_its_pending_candidates() -> None:
    calls: list[str] = []

    def impatient(name: str, text: str) -> Judgement:
        calls.append(name)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return judge(name, text)

    planner = PLANNERS[0]
    first = went(planner, Limits(trials=8), judged=impatient)
    assert first[-1] == Ended("interrupted")
    assert sum(isinstance(each, Judged) for each in first) == 3

    rest = went(planner, Limits(trials=8), first)
    whole = went(planner, Limits(trials=8))
    judged = [each for each in first + rest if isinstance(each, Judged | Proposed)]
    assert judged == [each for each in whole if isinstance(each, Judged | Proposed)]
