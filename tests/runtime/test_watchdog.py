"""The watchdog: a child that hangs, dies or raises gives a diagnostic, and the next call gets a working process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.processes.watchdog import WatchedProcess


def adding(a: int, b: int) -> Generator[str, None, int]:
    yield "adding"
    return a + b


def process() -> Generator[str, None, int]:
    yield "here"
    return os.getpid()


def hanging(first: str) -> Generator[str, None, None]:
    yield first
    yield "hung kernel"
    time.sleep(600)


def slow(notes: int) -> Generator[str, None, int]:
    for number in range(notes):
        time.sleep(0.2)
        yield str(number)
    return notes


def dying() -> Generator[str, None, None]:
    yield "bad kernel"
    os._exit(7)


def refusing() -> Generator[str, None, None]:
    yield "no memory"
    raise ArgusError(Diagnostic("E408", "error", "none left", help="free some"))


@pytest.fixture
def child() -> Iterator[WatchedProcess]:
    with WatchedProcess(20.0) as made:
        yield made


def test_calls_share_a_process(child: WatchedProcess) -> None:
    assert child.call(adding, 2, 3) == 5
    assert child.last_note == "adding"
    first = child.call(process)
    assert first not in {child.call(adding, 1, 1), os.getpid()}
    assert child.call(process) == first
    assert child.starts == 1


@pytest.mark.share(3)
def test_a_hung_process_is_killed_and_the_next_call_runs(child: WatchedProcess) -> None:
    assert child.call(adding, 0, 0) == 0
    before = child.call(process)
    child.seconds = 2.0
    with pytest.raises(ArgusError, match="reported no progress for 2 s at hung kernel") as hung:
        child.call(hanging, "first")
    assert hung.value.diagnostic.code == "E410"
    assert child.last_note == "hung kernel"
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    child.seconds = 20.0
    assert child.call(adding, 1, 1) == 2
    assert child.starts == 2


@pytest.mark.nightly
def test_each_note_restarts_the_time_limit(child: WatchedProcess) -> None:
    child.call(adding, 0, 0)
    child.seconds = 1.2
    assert child.call(slow, 8) == 8


@pytest.mark.share(3)
def test_a_process_that_dies_is_reported_with_its_status(child: WatchedProcess) -> None:
    with pytest.raises(ArgusError, match="ended at bad kernel with status 7") as died:
        child.call(dying)
    assert died.value.diagnostic.code == "E409"
    assert child.call(adding, 1, 1) == 2


@pytest.mark.share(3)
def test_a_diagnostic_is_passed_on(child: WatchedProcess) -> None:
    before = child.call(process)
    with pytest.raises(ArgusError) as refused:
        child.call(refusing)
    assert refused.value.diagnostic == Diagnostic("E408", "error", "none left", help="free some")
    assert child.call(process) != before


def three(child: WatchedProcess) -> int:
    return child.call(adding, 1, 2)


@pytest.mark.nightly
def test_threads_that_spawn_concurrently_restore_the_main_module() -> None:
    main = sys.modules["__main__"]
    children = [WatchedProcess(60.0) for _ in range(6)]
    try:
        with ThreadPoolExecutor(len(children)) as threads:
            found = list(threads.map(three, children))
    finally:
        for child in children:
            child.stop()

    assert found == [3] * len(children)
    assert sys.modules["__main__"] is main
