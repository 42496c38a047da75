"""The processes of `argus bench kernelbench`: those that prove and build ahead, and those that run problems."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import wait as wait_for_ends
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from time import monotonic, time
from typing import Any

from argus.core.diagnostic import ArgusError
from argus.report.kernelbench import Asked, Problem, Row, ahead_of
from argus.runtime.processes.isolated import run_command
from argus.runtime.processes.tickets import Tickets

WORKER = (sys.executable, "-m", "argus.torch.kernelbench.worker")
_START = 120.0
"""Seconds that a process may take to start and to end."""
_LOOK = 0.1
"""Seconds between two looks at the rows that the process has written."""
_PATIENCE = 4.0
"""Seconds that a process has to end by itself."""
_AHEAD = "argus.torch.kernelbench.ahead"


# -- proofs and builds ahead ---------------------------------------------------------------------------------


def prepare(place: str, key: str) -> None:
    """What a process does that proves and builds ahead. It imports torch, which this one does not need."""
    import_module(_AHEAD).main(place, key)


@contextmanager
def ahead(asked: Asked, place: Path, order: Sequence[Problem]) -> Generator[None]:
    """Meanwhile other processes prove and build the kernels of problems in this order; they end with the block.

    place: of what is asked. Each process is a copy of one that has imported torch, and prepares one problem.
    """
    stop = Event()
    thread = Thread(target=_prepare_all, args=(asked, place, order, stop))
    thread.start()
    try:
        yield
        while not asked.gpus and thread.is_alive() and not asked.is_over(time()):
            thread.join(_LOOK)
    finally:
        stop.set()
        thread.join()


def _prepare_all(asked: Asked, place: Path, order: Sequence[Problem], stop: Event) -> None:
    context = get_context("forkserver")
    context.set_forkserver_preload([_AHEAD])
    tickets = Tickets(Path(asked.folder))
    waiting = deque(order if asked.jobs else ())
    running: dict[Any, tuple[Problem, float]] = {}
    while (waiting or running) and not stop.is_set():
        while waiting and len(running) < asked.jobs:
            problem = waiting.popleft()
            if not tickets.take(ahead_of(problem)):  # another run prepares it
                continue
            process = context.Process(target=prepare, args=(str(place), problem.key), daemon=True)
            process.start()
            running[process] = problem, monotonic() + asked.ahead_seconds
        wait_for_ends([each.sentinel for each in running], timeout=_LOOK)
        for process, (problem, end) in tuple(running.items()):
            late = monotonic() > end
            if process.is_alive() and not late:
                continue
            _end([process])
            del running[process]
            if tickets.read(ahead_of(problem)) is None:
                why = f"not within {asked.ahead_seconds:g} s" if late else f"ended with {process.exitcode}"
                tickets.write(ahead_of(problem), {"ended": why})
    _end(running)
    for problem, _ in running.values():
        if tickets.read(ahead_of(problem)) is None:
            tickets.give_back(ahead_of(problem))


def _end(processes: Iterable[Any]) -> None:
    """End processes, which may first keep what they have proved."""
    until = monotonic() + _PATIENCE
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(max(0.0, until - monotonic()))
        process.kill()
        process.join()


# -- running -------------------------------------------------------------------------------------------------


def run(asked: Asked, place: Path) -> Iterator[Row]:
    """A row for each problem and turn, as the processes find it; one that ends its process has a row that says so.

    place: of what is asked.
    """
    found: SimpleQueue[Row | None] = SimpleQueue()

    def on_gpu(number: int) -> None:
        try:
            for row in _rows(asked, place, number):
                found.put(row)
        finally:
            found.put(None)

    with ThreadPoolExecutor(max(1, asked.gpus)) as pool:
        begun = [pool.submit(on_gpu, number) for number in range(asked.gpus)]
        for _ in begun:
            while (row := found.get()) is not None:
                yield row
        for each in begun:
            each.result()


def _rows(asked: Asked, place: Path, gpu: int) -> Iterator[Row]:
    """What one process after the other finds on a GPU."""
    by_key = {each.key: each for each in asked.problems}
    while not asked.is_over(time()):
        begun: Problem | None = None
        part: Row | None = None
        why: str | None = None
        did_any = False
        for each in _run_in_a_process(asked, place, gpu):
            if isinstance(each, str):
                why = each
            elif "begun" in each:
                begun, part = by_key[each["begun"]], None
            elif each.get("cut"):
                part = each
            elif begun is not None:
                yield named(begun) | each
                begun, did_any = None, True
        if why is None:
            return
        if begun is None and did_any:  # it has ended after one, by what that one left
            continue
        if begun is None:  # it has ended before it began one
            begun = next((each for each in asked.problems if Tickets(Path(asked.folder)).take(f"0-{each.key}")), None)
        if begun is None:
            return
        yield named(begun) | ({"error": why} if part is None else part | {"cut": why})


def named(problem: Problem) -> Row:
    name = Path(problem.path).stem.partition("_")[2]
    return {"level": problem.level, "problem": problem.number, "name": name}


def _run_in_a_process(asked: Asked, place: Path, gpu: int) -> Iterator[Row | str]:
    """What the process writes, then, unless it has come to the end, why it has not."""
    with tempfile.TemporaryDirectory(prefix="argus-kernelbench-") as folder:
        rows = Path(folder) / "rows"
        rows.touch()
        limit = _START + 2 * asked.seconds * len(asked.problems)
        with ThreadPoolExecutor(1) as pool, rows.open(encoding="utf-8") as written:
            process = pool.submit(run_command, (*WORKER, str(place), str(rows), str(gpu)), limit)
            while not process.done():
                wait_for([process], timeout=_LOOK)
                yield from _new(written)
            yield from _new(written)
        try:
            status, said = process.result()
        except ArgusError as problem:
            yield problem.diagnostic.message
            return
        if status:
            yield _why(status, said, asked)


def _new(written: Any) -> Iterator[Row]:  # noqa: ANN401 reason: an open file
    """The lines that have come to their end since the last call."""
    while True:
        start = written.tell()
        text = written.readline()
        if not text.endswith("\n"):
            written.seek(start)
            return
        yield json.loads(text)


def _why(status: int, said: str, asked: Asked) -> str:
    if status == -signal.SIGALRM:
        if asked.is_over(time()):
            return "the run ended"
        return f"it did not finish within {asked.seconds:g} s, and its process was stopped"
    last = (said.strip().splitlines() or [""])[-1]
    return f"its process ended with status {status}: {last[:200]}"
