"""The last round of a search: who is in it, how it is decided, what the journal keeps, and how it is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from argus.cli.search.page.page import page
from argus.cli.search.page.story import story_of
from argus.cli.search.text import last_round_lines, outcome_lines
from argus.policy.baselines import Exhaustive
from argus.policy.last_round import BATCH, BATCHES, Batch, Standing, finalists, median_interval, run_last_round
from argus.search.bench_harness.examine import run_to_end
from argus.search.bench_harness.interleaved import bind_finalists
from argus.search.bench_harness.session import session
from argus.search.evaluation.evaluators import InProcess
from argus.search.evaluation.finals import held
from argus.search.evaluation.gate_task import GateTask
from argus.search.evaluation.gpu_bench import Job
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Ended, Event, Judged, LastRound, Proposed, best_of, settled_times
from argus.search.journal import Journal, decode_event, encode_event
from argus.search.loop import Limits, Search, replay_events
from argus.search.problems.problem import Gemm
from argus.search.run import SearchResult
from argus.testing.simulated import Simulated, SimulatedBench
from tests.search.bench_harness.candidates import HONEST, Candidate
from tests.search.bench_harness.test_cheats import LEAST, PLAN, PROBLEM
from tests.search.bench_harness.timing_cheats import FasterThanPhysics, IdleUnderTiming, PatchedEvents
from tests.search.test_search import SITUATION, STARTED, judge

Measure = Callable[[tuple[str, ...]], Batch]


def drawn(means: Mapping[str, float], noise: float, asked: list[tuple[str, ...]]) -> Measure:
    """Times of candidates with these means in microseconds; each tenth one is lengthened to tenfold."""
    generator = np.random.default_rng(29)

    def batch(names: tuple[str, ...]) -> Batch:
        asked.append(names)
        times = {name: means[name] * (1 + noise * generator.standard_normal(BATCH)) for name in names}
        late = {name: np.where(generator.random(BATCH) < 0.1, 10 * each, each) for name, each in times.items()}
        return Batch({"sustained": {name: list(map(float, each)) for name, each in late.items()}})

    return batch


def test_candidates_near_the_fastest_are_finalists() -> None:
    times = {"a": 103.1, "b": 100.0, "c": 102.9, "d": 101.0}

    assert finalists(times) == ("b", "d", "c")
    assert finalists({}) == ()
    assert len(finalists({str(number): 100.0 for number in range(9)})) == 6


@pytest.mark.parametrize(("count", "level", "rank"), [(12, 0.05, 3), (12, 0.001, 1), (5, 0.05, 0)])
def test_the_interval_of_a_median_is_of_order_statistics(count: int, level: float, rank: int) -> None:
    """Ranks as in tables of the sign test."""
    low, high = median_interval(list(map(float, range(1, count + 1))), level)

    assert (low, high) == ((rank, count + 1 - rank) if rank else (-np.inf, np.inf))


def test_a_slower_candidate_is_told_apart_and_drops_out() -> None:
    asked: list[tuple[str, ...]] = []
    found = run_last_round(("near", "far", "fast"), drawn({"near": 100.9, "far": 103.0, "fast": 100.0}, 0.005, asked))

    assert [(each.name, each.place) for each in found.standings] == [
        ("fast", "best"),
        ("near", "slower"),
        ("far", "slower"),
    ]
    assert "far" in asked[0]
    assert "far" not in asked[-1]
    assert found.standings[2].low > 1.0


def test_equal_candidates_are_called_equal() -> None:
    found = run_last_round(("a", "b"), drawn({"a": 100.0, "b": 100.0}, 0.002, []))

    assert {each.place for each in found.standings} == {"best", "equal"}


def test_what_stays_in_doubt_is_said_to_be() -> None:
    asked: list[tuple[str, ...]] = []
    found = run_last_round(("a", "b"), drawn({"a": 100.0, "b": 100.0}, 0.1, asked))

    assert [each.place for each in found.standings] == ["best", "not told apart"]
    assert (len(asked), found.rounds) == (BATCHES, BATCHES * BATCH)


def test_equal_candidates_are_rarely_told_apart() -> None:
    """At most one in twenty last rounds is wrong."""
    generator = np.random.default_rng(7)
    wrong = 0
    for _ in range(100):

        def batch(names: tuple[str, ...]) -> Batch:
            return Batch({"sustained": {name: list(generator.lognormal(0.0, 0.01, BATCH)) for name in names}})

        found = run_last_round(("a", "b", "c", "d"), batch)
        wrong += any(each.place == "slower" for each in found.standings)
    assert wrong <= 5


# -- on the bench ------------------------------------------------------------------------------------------------


def timed(candidates: Mapping[str, type[Candidate]], paces: Mapping[str, float], noise: float = 0.0) -> LastRound:
    """The last round of candidates on a simulated device, without a clock."""
    device = Simulated(noise=noise)
    slept: list[float] = []
    with session(SimulatedBench(device), PLAN, PROBLEM) as opened:
        bound = {name: kind(device, paces.get(name, HONEST)) for name, kind in candidates.items()}
        steps = run_to_end(bind_finalists(opened, bound))

        def measure(_jobs: Mapping[str, Job], names: tuple[str, ...]) -> Batch:
            return run_to_end(steps.batch(names, slept.append))

        job = Job(Gemm(8, 8, 8, "bf16", "sm_90a"), "", seed=1)
        found = held(dict.fromkeys(candidates, job), measure)
    assert not device.taken
    return found


def test_both_regimes_are_timed_and_the_faster_candidate_is_best() -> None:
    found = timed({"slow": Candidate, "fast": Candidate}, {"slow": 1.02 * HONEST}, 0.01)

    assert [(each.name, each.place) for each in found.standings] == [("fast", "best"), ("slow", "slower")]
    assert found.best == "fast"
    for each in found.standings:
        assert set(each.medians) == {"sustained", "duty-cycled"}
        pace = HONEST if each.name == "fast" else 1.02 * HONEST
        assert each.medians["sustained"] == pytest.approx(pace * LEAST, rel=0.01)


@pytest.mark.parametrize(
    ("cheat", "check"),
    [(IdleUnderTiming, "timed"), (PatchedEvents, "instruments"), (FasterThanPhysics, "physics")],
)
def test_a_cheat_in_the_last_round_is_wrong(cheat: type[Candidate], check: str) -> None:
    found = timed({"cheat": cheat}, {})

    assert found.wrong == ("cheat",)
    assert found.standings[0].why.startswith(check)
    assert not found.best


def test_a_cheat_does_not_win_over_an_honest_candidate() -> None:
    found = timed({"cheat": IdleUnderTiming, "honest": Candidate}, {})

    assert (found.best, found.wrong) == ("honest", ("cheat",))


def test_without_trusted_clocks_nobody_is_best_and_only_the_cheat_is_wrong() -> None:
    found = timed({"cheat": PatchedEvents, "honest": Candidate}, {})

    assert [(each.name, each.place) for each in found.standings] == [("honest", "not told apart"), ("cheat", "wrong")]


def test_a_finalist_that_is_no_longer_proved_is_wrong() -> None:
    found = held({"refuted": "I1: a reason"}, lambda _jobs, _names: Batch({}))

    assert found.standings == (Standing("refuted", "wrong", why="I1: a reason"),)


# -- in a search -------------------------------------------------------------------------------------------------

RESULT = LastRound((Standing("31", "best", {"sustained": 149.0}), Standing("32", "slower", low=1.01, high=1.02)), 24)


def alike(name: str, text: str = "") -> Judgement:
    """As `judge`, but all candidates that pass are nearly as fast as the fastest."""
    found = judge(name, text)
    return found if found.microseconds is None else evolve(found, microseconds=150.0 + found.microseconds / 1000)


def went(events: Sequence[Event], asked: list[Mapping[str, str]], trials: int = 12) -> list[Event]:
    before = replay_events(events, Exhaustive(), SITUATION, 5)
    found: list[Event] = []

    def finals(texts: Mapping[str, str]) -> LastRound:
        asked.append(texts)
        first, second, *_ = texts
        return evolve(RESULT, standings=(Standing(second, "best"), Standing(first, "slower", low=1.01, high=1.02)))

    search = Search(Exhaustive(), InProcess(alike), Limits(trials=trials), before.state, found.append)
    search.last_round, search.settled, search.failed = finals, before.settled, before.failed
    assert list(search.go(before.under_way)) == found
    return found


def test_a_run_with_a_last_round_resumes_identically_wherever_it_was_cut_off() -> None:
    asked: list[Mapping[str, str]] = []
    whole = went((), asked)

    assert [type(each) for each in whole[-2:]] == [LastRound, Ended]
    assert len(asked) == 1
    assert len(asked[0]) == 6
    for cut in range(len(whole)):
        assert whole[:cut] + went(whole[:cut], []) == whole
    again: list[Mapping[str, str]] = []
    assert not any(isinstance(each, LastRound) for each in went(whole, again))
    longer = went(whole, again, trials=14)
    assert [type(each) for each in longer].count(LastRound) == len(again) == 1


def test_ctrl_c_ends_a_last_round_without_a_result() -> None:
    def finals(_texts: Mapping[str, str]) -> LastRound:
        raise KeyboardInterrupt

    before = replay_events((), Exhaustive(), SITUATION, 5)
    found: list[Event] = []
    search = Search(Exhaustive(), InProcess(alike), Limits(trials=3), before.state, found.append, last_round=finals)
    list(search.go())

    assert [type(each) for each in found[-2:]] == [Judged, Ended]
    assert found[-1] == Ended("interrupted")


@pytest.mark.nightly
def test_a_finalist_is_proved_and_built_again() -> None:
    task = GateTask("gemm:4096x4096x4096:bf16", "gfx942", gpu=True)
    job = task.prepare("cdna3", "")

    assert isinstance(job, Job)
    assert Path(job.path).is_file()


def test_the_journal_keeps_the_last_round_and_its_winner_is_the_best(tmp_path: Path) -> None:
    events = went((), [])
    with Journal(tmp_path / "runs.db") as journal:
        name = journal.begin(STARTED)
        for event in events:
            journal.append(name, event)
        kept = journal.events(name)

    assert kept == (STARTED, *events)
    last = next(each for each in kept if isinstance(each, LastRound))
    assert decode_event(encode_event(last)) == last
    single = min(
        (each.judgement for each in kept if isinstance(each, Judged)), key=lambda each: each.microseconds or 1e9
    )
    best, story = best_of(kept), story_of(name, kept)
    assert best is not None
    assert best.name == last.best != single.name
    assert story.best is not None
    assert story.best.name == last.best


def timed_as(name: str, microseconds: float) -> Judged:
    return Judged(Judgement(name, "timed", "timing", microseconds=microseconds, reward="measured"))


@pytest.mark.parametrize(
    ("after", "best"),
    [
        ((), "31"),
        ((timed_as("40", 149.9),), "31"),
        ((timed_as("40", 149.9), LastRound((), missing="E406: no GPU")), "31"),
        ((timed_as("40", 140.0),), "40"),
        ((LastRound((Standing("32", "best"), Standing("31", "wrong"))),), "32"),
        ((LastRound((Standing("31", "wrong"),)),), "32"),
    ],
)
def test_later_candidates_compete_with_the_winner(after: tuple[Event, ...], best: str) -> None:
    found = best_of((timed_as("32", 149.5), timed_as("31", 149.8), RESULT, *after))

    assert found is not None
    assert found.name == best


def test_a_lucky_single_measurement_is_not_the_time_of_the_best(tmp_path: Path) -> None:
    lucky, usual = timed_as("31", 120.0), timed_as("32", 149.5)
    medians = {"sustained": 149.0, "duty-cycled": 140.0}
    last = LastRound((Standing("31", "best", medians), Standing("32", "slower", {"sustained": 151.0})), 24)
    events: list[Event] = [
        STARTED,
        Proposed("31", (), 0.0, "bandit"),
        lucky,
        Proposed("32", (), 0.0, "bandit"),
        usual,
        last,
    ]

    assert (best_of(events), settled_times(events)) == (
        evolve(lucky.judgement, microseconds=149.0),
        {"31": 149.0, "32": 151.0},
    )
    story = story_of("run-0001", events)
    assert story.best is not None
    assert (story.best.name, story.best.microseconds, story.settled) == ("31", 149.0, True)
    assert "measured 149.0 us in the last round" in page(story)
    found = SearchResult(
        story.problem, "run-0001", tmp_path, best_of(events), (), "no gain", settled=settled_times(events)
    )
    assert any("measured 149.0 us in the last round" in line for line in outcome_lines(found))
    without = story_of("run-0001", events[:-1])
    assert without.best is not None
    assert (without.best.microseconds, without.settled) == (120.0, False)


@pytest.mark.parametrize(("trials", "usual", "timed_again"), [(1, "", 1), (1, "11", 1), (8, "11", 2), (8, "99", 1)])
def test_a_single_best_and_the_design_used_without_a_search_are_timed_too(
    trials: int, usual: str, timed_again: int
) -> None:
    """Of those in the order of the space, 11 is slow, and 99 is no design."""
    asked: list[Mapping[str, str]] = []

    def finals(texts: Mapping[str, str]) -> LastRound:
        asked.append(texts)
        return LastRound((Standing(next(iter(texts)), "best"),))

    before = replay_events((), Exhaustive(), SITUATION, 5)
    search = Search(Exhaustive(), InProcess(judge), Limits(trials=trials), before.state, lambda _event: None)
    search.last_round, search.usual = finals, usual
    list(search.go())

    assert [len(each) for each in asked] == [timed_again]


def test_the_last_round_is_told() -> None:
    assert list(last_round_lines(RESULT)) == [
        "last round: 2 candidates, 24 interleaved rounds",
        "  31: best; sustained 149.0 us",
        "  32: slower, +1.00% to +2.00%",
    ]
    assert list(last_round_lines(LastRound((), missing="E406: no GPU"))) == ["last round: not measured: E406: no GPU"]
