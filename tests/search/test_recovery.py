"""Searches that are killed, interrupted or started twice: journals stay consistent and runs resume identically."""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from argus.cli.main import main
from argus.core.diagnostic import ArgusError
from argus.policy.bandit import CONSTANT, Bandit, WeightPrior
from argus.policy.baselines import Random
from argus.policy.planner import Planner
from argus.search import journal as journal_module
from argus.search.evaluation.evaluators import InProcess
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Ended, Event, Judged, Proposed, Started
from argus.search.interrupts import Interrupts
from argus.search.journal import Journal
from argus.search.loop import Limits, ReplayedRun, Search, replay_events
from tests.search.test_search import SITUATION, STARTED, judge

KILLS = 50
TRIALS = 20
PLANNERS: tuple[Planner, ...] = (Bandit({CONSTANT: WeightPrior(-2.0, 0.5)}), Random())


def slow(name: str, text: str = "") -> Judgement:
    time.sleep(0.002)
    return judge(name, text)


def gone_on(path: Path, planner: Planner, judged: Callable[[str, str], Judgement] = slow) -> None:
    """Continue a run from its journal to the end, as one process would."""
    with Interrupts() as interrupts, Journal(path) as journal:
        name = "run-0001" if journal.runs() else journal.begin(STARTED)
        interrupts.hold()
        with journal.held(name):
            before = replay_events(journal.events(name), planner, SITUATION, 5)
            limits, may_leave = Limits(trials=TRIALS), interrupts.may_leave
            search = Search(
                planner,
                InProcess(judged),
                limits,
                before.state,
                lambda event: journal.append(name, event),
                None,
                may_leave,
            )
            for _ in search.go(before.under_way):
                pass


def reached(path: Path, planner: Planner) -> tuple[list[Event], ReplayedRun]:
    """The proposals, the judgements and the planner's final state."""
    with Journal(path) as journal:
        events = journal.events("run-0001")
    return [each for each in events if isinstance(each, Proposed | Judged)], replay_events(
        events, planner, SITUATION, 5
    )


def forked(work: Callable[[], object]) -> int:
    """Fork a process that calls a function; exit code 0 if it raised nothing. Returns its pid."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child


# -- kill -9 -----------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_run_that_is_killed_fifty_times_is_the_run_that_never_was(tmp_path: Path) -> None:
    generator, kills, number = random.Random(3), 0, 0  # noqa: S311 reason: moments, no secrets
    while kills < KILLS:
        planner = PLANNERS[number % len(PLANNERS)]
        cut, whole = tmp_path / f"cut-{number}.db", tmp_path / f"whole-{number}.db"
        gone_on(whole, planner)
        while True:
            child = forked(lambda path=cut, by=planner: gone_on(path, by))
            time.sleep(generator.uniform(0.0, 0.06))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if os.WIFEXITED(status):
                assert os.WEXITSTATUS(status) == 0
                break
            kills += 1

        assert reached(cut, planner) == reached(whole, planner)
        number += 1


def test_a_run_is_locked_by_one_process_until_it_ends(tmp_path: Path) -> None:
    path, ready = tmp_path / "runs.db", tmp_path / "ready"

    def hold() -> None:
        with Journal(path) as journal, journal.held("run-0001"):
            ready.touch()
            time.sleep(600)

    child = forked(hold)
    while not ready.exists():
        time.sleep(0.01)
    with Journal(path) as journal:
        with (
            pytest.raises(ArgusError, match=r"E904: .* another process is running `run-0001`"),
            journal.held("run-0001"),
        ):
            raise AssertionError
        with journal.held("run-0002"):
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with journal.held("run-0001"):
            assert (tmp_path / "runs.db-run-0001.lock").exists()
    assert not (tmp_path / "runs.db-run-0001.lock").exists()


def test_a_second_search_of_a_run_is_refused_and_does_no_harm(tmp_path: Path) -> None:
    path, planner = tmp_path / "runs.db", PLANNERS[0]
    told: list[str] = []

    def twice(name: str, text: str = "") -> Judgement:
        if not told:
            with pytest.raises(ArgusError) as raised:
                gone_on(path, planner)
            told.append(raised.value.diagnostic.code)
        return judge(name, text)

    gone_on(path, planner, twice)
    whole = tmp_path / "whole.db"
    gone_on(whole, planner, judge)

    assert told == ["E904"]
    assert reached(path, planner) == reached(whole, planner)


def test_events_of_another_writer_are_detected(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as one, Journal(tmp_path / "runs.db") as other:
        name = one.begin(STARTED)
        assert other.events(name) == (STARTED,)
        other.append(name, Ended("interrupted"))
        with pytest.raises(ArgusError, match=r"E904: another process has continued .*: it has 2 events, expected 1"):
            one.append(name, Ended("no gain"))
        assert other.events(name) == (STARTED, Ended("interrupted"))


# -- Ctrl-C ------------------------------------------------------------------------------------------------------


def test_an_event_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        name = journal.begin(STARTED)
        with monkeypatch.context() as patched:
            patched.setattr(journal_module, "encode_event", interrupted)
            with pytest.raises(KeyboardInterrupt):
                journal.append(name, Ended("no gain"))
        journal.append(name, Ended("interrupted"))

        assert journal.events(name) == (STARTED, Ended("interrupted"))


def interrupted(_: Event) -> str:
    raise KeyboardInterrupt


@pytest.fixture
def _ctrl_c() -> Any:  # noqa: ANN401 reason: a fixture
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


FILES = ("search.py", "journal.py", "events.py", "evaluators.py", "asking.py")


def lines_of(work: Callable[[], object], at: int | None) -> int:
    """Counts executed lines of a search, and raises an interrupt at one of them."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:  # noqa: ANN401 reason: as `settrace` has it
        nonlocal count
        del argument
        if Path(frame.f_code.co_filename).name not in FILES:
            return None
        if event == "line" and signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            count += 1
            if count == at:
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.nightly
@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_at_any_line_ends_the_search_cleanly_and_it_resumes(tmp_path: Path) -> None:
    planner, whole = PLANNERS[1], tmp_path / "whole.db"
    lines = lines_of(lambda: gone_on(whole, planner, judge), None)
    assert lines > 500
    for number, at in enumerate(range(1, lines, lines // 24)):
        path = tmp_path / f"{number}.db"
        lines_of(lambda path=path: gone_on(path, planner, judge), at)
        with Journal(path) as journal:
            last = journal.events("run-0001")[-1]
        assert isinstance(last, Ended), at
        gone_on(path, planner, judge)
        assert reached(path, planner) == reached(whole, planner), at


# -- other troubles ----------------------------------------------------------------------------------------------


def test_a_full_disk_is_reported_and_written_events_stay(tmp_path: Path) -> None:
    path, planner = tmp_path / "runs.db", PLANNERS[0]

    def starved() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
        with pytest.raises(ArgusError, match="E904"):
            gone_on(path, planner, judge)

    child = forked(starved)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with Journal(path) as journal:
        assert 0 < journal.runs()[0].judged < TRIALS
    whole = tmp_path / "whole.db"
    gone_on(whole, planner, judge)
    gone_on(path, planner, judge)
    assert reached(path, planner) == reached(whole, planner)


@pytest.mark.parametrize(
    "event",
    [
        Proposed("none-such", (), 0.0, "bandit"),
        Judged(Judgement("none-such", "timed", "timing", microseconds=1.0)),
        Judged(Judgement("00", "timed", "timing", microseconds=1.0)),
    ],
)
def test_a_journal_of_other_designs_is_reported(event: Event) -> None:
    with pytest.raises(ArgusError, match="E904: the run cannot be resumed"):
        replay_events((STARTED, event), PLANNERS[0], SITUATION, 5)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["gemm:1024x512x512"], "is for gemm:512x512x512:bf16"),
        (["--planner", "random"], "has its own planner"),
        (["--seed", "4"], "has its own seed"),
        (["--target", "sm_90a"], "has its own target"),
        (["--on", "gpu"], "E406"),
    ],
)
def test_a_run_does_not_go_on_as_another_one(
    arguments: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.db"
    first = Started("gemm:512x512x512:bf16", "gfx942", "bandit", 0, 2.0, "launch", 3, {}, "predicted")
    with Journal(path) as journal:
        journal.begin(first)

    assert main(["optimize", *arguments, "--resume", "run-0001", "--journal", str(path), "--trials", "1"]) == 3
    assert why in capsys.readouterr().err
    with Journal(path) as journal:
        assert journal.events("run-0001") == (first,)
