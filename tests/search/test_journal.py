import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from argus.core.diagnostic import ArgusError
from argus.search import journal as journals
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Ended, Event, Judged, Proposed, Resumed, Started
from argus.search.journal import VERSION, Journal, decode_event, encode_event

STARTED = Started("gemm:8x8x8:bf16", "sm_90a", "bandit", 0, 2.0, "launch", 3, {"argus": "0.1.0"})
EVENTS: tuple[Event, ...] = (
    Proposed("small", ("larger-bn (bn 64 -> 128)",), 0.5, "bandit"),
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
def test_an_event_round_trips(event: Event) -> None:
    assert decode_event(encode_event(event)) == event


def test_a_run_is_its_events_in_order(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        name = journal.begin(STARTED)
        for event in EVENTS:
            journal.append(name, event)

        assert journal.events(name) == (STARTED, *EVENTS)
        (run,) = journal.runs()

    assert (run.name, run.started, run.judged, run.ended) == (name, STARTED, 2, "interrupted")


def test_a_run_with_an_infinite_utility_is_listed(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        name = journal.begin(STARTED)
        journal.append(name, Proposed("usual", (), float("inf"), "bandit"))

        assert [each.name for each in journal.runs()] == [name]


def test_written_events_survive_the_process(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("statements", range(5))
def test_a_store_may_be_created_while_another_opens_it(
    statements: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, left = tmp_path / "runs.db", [statements]

    class Late(sqlite3.Connection):
        """Lets another process create the tables after so many of its statements."""

        def execute(self, *arguments: Any) -> sqlite3.Cursor:  # noqa: ANN401 reason: sqlite3's
            if left[0] == 0:
                Journal(path).close()
            left[0] -= 1
            return super().execute(*arguments)

    def connect_late(file: Path) -> sqlite3.Connection:
        monkeypatch.undo()
        return sqlite3.connect(file, timeout=0, isolation_level=None, factory=Late)

    monkeypatch.setattr(journals, "_connected", connect_late)
    with Journal(path) as journal:
        assert journal.begin(STARTED) == "run-0001"


@pytest.mark.parametrize("data", [b"no store at all, only text" * 50, None])
def test_a_file_that_is_not_a_journal_is_reported(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "runs.db"
    if data is None:
        path.mkdir()
    else:
        path.write_bytes(data)

    with pytest.raises(ArgusError) as raised:
        Journal(path)

    assert raised.value.diagnostic.code == "E904"
    assert data is None or "it is no SQLite database, or a damaged one" in raised.value.diagnostic.message


def test_an_unknown_run_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        journal.begin(STARTED)
        with pytest.raises(ArgusError) as raised:
            journal.events("run-0007")

    assert raised.value.diagnostic.code == "E904"
    assert "run-0001" in raised.value.diagnostic.message


def test_a_damaged_event_is_reported(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.db") as journal:
        journal.begin(STARTED)
    store = sqlite3.connect(tmp_path / "runs.db")
    store.execute("insert into events (run, number, data) values ('run-0001', 1, '{\"event\": \"Judged\"}')")
    store.commit()
    store.close()

    with Journal(tmp_path / "runs.db") as journal, pytest.raises(ArgusError) as raised:
        journal.events("run-0001")

    assert raised.value.diagnostic.code == "E904"


def kept(path: Path) -> Path:
    with Journal(path) as journal:
        journal.begin(STARTED)
    return path


def refusal(path: Path, patience: float = 1.0) -> str:
    """The error message for an unusable file."""
    with pytest.raises(ArgusError) as raised, Journal(path, patience) as journal:
        journal.append("run-0001", EVENTS[0])
    assert raised.value.diagnostic.code == "E904"
    return raised.value.diagnostic.message


def done(path: Path, *statements: str) -> None:
    store = sqlite3.connect(path)
    for each in statements:
        store.execute(each)
    store.commit()
    store.close()


def test_a_journal_of_another_version_is_reported_and_unchanged(tmp_path: Path) -> None:
    path = kept(tmp_path / "runs.db")
    done(path, f"pragma user_version = {VERSION + 1}")

    assert f"its version is {VERSION + 1}, but this Argus reads {VERSION}" in refusal(path)


def test_a_store_of_before_versions_were_written_is_read(tmp_path: Path) -> None:
    path = kept(tmp_path / "runs.db")
    done(path, "pragma user_version = 0")

    with Journal(path) as journal:
        assert journal.events("run-0001") == (STARTED,)


def test_another_database_is_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "places.db"
    done(path, "create table places (url text)")

    assert "another kind of database" in refusal(path)
    store = sqlite3.connect(path)
    assert store.execute("select name from sqlite_master").fetchall() == [("places",)]
    assert store.execute("pragma journal_mode").fetchone() == ("delete",)
    store.close()


def test_an_event_of_another_kind_is_reported(tmp_path: Path) -> None:
    path = kept(tmp_path / "runs.db")
    done(path, "insert into events (run, number, data) values ('run-0001', 1, '{\"event\": \"Later\"}')")

    with Journal(path) as journal, pytest.raises(ArgusError) as raised:
        journal.events("run-0001")

    assert "an event that this version cannot read" in raised.value.diagnostic.message


def test_a_locked_journal_is_waited_for_and_then_reported(tmp_path: Path) -> None:
    path = kept(tmp_path / "runs.db")
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("begin immediate")

    before = time.monotonic()
    assert "another process has locked it" in refusal(path, 0.3)
    assert 0.3 < time.monotonic() - before < 10.0

    release = threading.Timer(0.5, lambda: holder.execute("rollback"))
    release.start()
    with Journal(path) as journal:
        journal.append("run-0001", EVENTS[0])
        assert journal.events("run-0001") == (STARTED, EVENTS[0])
    release.join()
    holder.close()


def test_an_interrupt_leaves_no_transaction_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_event: Event) -> str:
        raise KeyboardInterrupt

    with Journal(kept(tmp_path / "runs.db")) as journal:
        with monkeypatch.context() as patched:
            patched.setattr("argus.search.journal.encode_event", interrupted)
            with pytest.raises(KeyboardInterrupt):
                journal.append("run-0001", EVENTS[0])
        journal.append("run-0001", EVENTS[-1])

        assert journal.events("run-0001") == (STARTED, EVENTS[-1])


def test_a_run_is_gone_on_with_by_one_process(tmp_path: Path) -> None:
    path = kept(tmp_path / "runs.db")
    with Journal(path) as journal, Journal(path) as other:
        with journal.held("run-0001"):
            with pytest.raises(ArgusError) as raised, other.held("run-0001"):
                pass
            with other.held("run-0002"):
                pass
        with other.held("run-0001"):
            pass

    assert "another process is running `run-0001`" in raised.value.diagnostic.message
    assert [each.name for each in tmp_path.iterdir()] == ["runs.db"]


HOLDER = """
import os, sys
from pathlib import Path
from argus.search.journal import Journal
with Journal(Path(sys.argv[1])) as journal, journal.held("run-0001"):
    print("held", flush=True)
    os.kill(os.getpid(), 9)
"""


def test_a_killed_process_releases_its_run(tmp_path: Path) -> None:
    path = kept(tmp_path / "runs.db")
    killed = subprocess.run(  # noqa: S603 reason: our own script
        [sys.executable, "-c", HOLDER, str(path)], capture_output=True, text=True, check=False
    )

    assert killed.stdout == "held\n"
    with Journal(path) as journal, journal.held("run-0001"):
        journal.append("run-0001", EVENTS[0])
        assert len(journal.events("run-0001")) == 2
