import sqlite3
import threading
from pathlib import Path

import pytest

from argus.core.diagnostic import ArgusError
from argus.optimizer.events import Asked, Ended, Event, Judged, Proposed, Resumed, Started
from argus.optimizer.journal import Journal, read, written
from argus.optimizer.judgement import Judgement

STARTED = Started("gemm:8x8x8:bf16", "sm_90a", "bandit", 0, 2.0, "launch", 3, {"argus": "0.1.0"})
EVENTS: tuple[Event, ...] = (
    Proposed("small", ("wider-tiles (bn 64 -> 128)",), 0.5, "bandit"),
    Judged(
        Judgement(
            "small",
            "refuted",
            "invariants",
            "I1: operands differ",
            seconds={"parse": 0.1, "invariants": 0.2},
            counterexample={"code": "I1", "sizes": {"M": 1}, "block": [0, 0], "thread": None},
        )
    ),
    Judged(Judgement("wide", "timed", "timing", microseconds=12.5, reward="measured", resources={"registers": 168.0})),
    Asked("a-model", {"proposals": [{"name": "wide"}]}, 1200, 0.01),
    Resumed(2),
    Ended("interrupted"),
)


@pytest.mark.parametrize("event", [STARTED, *EVENTS], ids=lambda each: type(each).__name__)
def test_an_event_comes_back_as_it_was_written(event: Event) -> None:
    assert read(written(event)) == event


def test_a_run_is_its_events_in_order(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        name = journal.begin(STARTED)
        for event in EVENTS:
            journal.append(name, event)

        assert journal.events(name) == (STARTED, *EVENTS)
        (run,) = journal.runs()

    assert (run.name, run.started, run.judged, run.ended) == (name, STARTED, 2, "interrupted")


def test_what_was_written_outlives_the_process(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "runs.db")
    name = journal.begin(STARTED)
    journal.append(name, EVENTS[0])

    with Journal(tmp_path / "runs.db") as another:
        assert another.events(name) == (STARTED, EVENTS[0])
    journal.close()


def test_events_are_neither_changed_nor_removed(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        journal.begin(STARTED)
    store = sqlite3.connect(tmp_path / "runs.db")

    with pytest.raises(sqlite3.DatabaseError, match="never changed"):
        store.execute("update events set data = '{}'")
    with pytest.raises(sqlite3.DatabaseError, match="never removed"):
        store.execute("delete from events")
    store.close()


def test_runs_share_a_store(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    names: list[str] = []

    def one() -> None:
        with Journal(path) as journal:
            name = journal.begin(STARTED)
            names.append(name)
            for event in EVENTS * 5:
                journal.append(name, event)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(set(names)) == 4
    with Journal(path) as journal:
        assert all(journal.events(name) == (STARTED, *EVENTS * 5) for name in names)


@pytest.mark.parametrize("data", [b"no store at all, only text" * 50, None])
def test_a_file_that_is_no_store_is_told(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "runs.db"
    if data is None:
        path.mkdir()
    else:
        path.write_bytes(data)

    with pytest.raises(ArgusError) as raised:
        Journal(path)

    assert raised.value.diagnostic.code == "E904"


def test_a_run_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        journal.begin(STARTED)
        with pytest.raises(ArgusError) as raised:
            journal.events("run-0007")

    assert raised.value.diagnostic.code == "E904"
    assert "run-0001" in raised.value.diagnostic.message


def test_a_damaged_event_is_told(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        journal.begin(STARTED)
    store = sqlite3.connect(tmp_path / "runs.db")
    store.execute("insert into events (run, number, data) values ('run-0001', 1, '{\"event\": \"Judged\"}')")
    store.commit()
    store.close()

    with Journal(tmp_path / "runs.db") as journal, pytest.raises(ArgusError) as raised:
        journal.events("run-0001")

    assert raised.value.diagnostic.code == "E904"
