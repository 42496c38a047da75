"""`argus bench kernelbench`: problems of KernelBench by `torch.compile(backend="argus")`, in a process of their own."""

from __future__ import annotations

import json
import re
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from time import time
from typing import Any

import click
from attrs import evolve

from argus.cli.options import json_option
from argus.cli.screen import Screen
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.report.command_result import Outcome
from argus.report.kernelbench import Asked, Problem
from argus.runtime.processes.isolated import run_command

SCHEMA = "argus-kernelbench-2"
WORKER = (sys.executable, "-m", "argus.torch.kernelbench.worker")
_NUMBER = re.compile(r"(\d+)_(.+)\.py")
_WANTED = re.compile(r"(?:(\d+)\.)?(\d+)")
_START = 120.0
"""Seconds that a process may take to start and to end."""
_LOOK = 0.2
"""Seconds between two looks at the rows that the process has written."""
_SPAWN = get_context("spawn")
Row = dict[str, Any]


@click.command()
@click.argument("checkout", type=click.Path(path_type=Path))
@click.option("--level", "levels", type=click.IntRange(1, 4), multiple=True, help="A level; repeatable. Default: 1, 2.")
@click.option("--problem", "wanted", multiple=True, metavar="N", help="Only N or LEVEL.N; repeatable, in order.")
@click.option("--device", type=click.Choice(["cuda", "cpu"]), default="cuda", show_default=True)
@click.option("--seconds", type=float, default=300.0, show_default=True, help="The time limit of one problem.")
@click.option("--budget", type=float, default=0.0, help="Begin no problem after so many seconds. Default: no limit.")
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="Of weights and inputs.")
@click.option("--shapes", type=click.IntRange(0), default=2, show_default=True, help="Other sizes.")
@click.option("--rounds", type=click.IntRange(0), default=30, show_default=True, help="Measured calls on a GPU.")
@click.option("--beside", type=click.Choice(["eager", "compile", "all"]), default="all", show_default=True,
              help="Measure beside eager torch alone, torch.compile, or its max-autotune mode, too.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(0), default=0, help="Processes that prove and build kernels ahead.")
@click.option("--solver", default="portfolio", show_default=True, help="The solver of the proofs.")
@click.option("--into", type=click.Path(path_type=Path), help="Add each problem's row to this file, as JSON in a line.")
@json_option
def kernelbench(
    checkout: Path,
    levels: tuple[int, ...],
    wanted: tuple[str, ...],
    budget: float,
    beside: str,
    into: Path | None,
    as_json: bool,
    **how: Any,  # noqa: ANN401 reason: options of a run, by name
) -> Outcome:
    """Problems of a checkout of KernelBench: proved or not, right or not, and their times beside torch's.

    On the CPU sizes are reduced, and the interpreter runs the kernels. Problems' code is the checkout's: it runs in a
    process of its own, which is stopped by a problem that takes too long; the next ones have a new process. Exit code 1
    if a problem is wrong.
    """
    screen = Screen()
    peers = {"eager": (), "compile": ("compile",), "all": ("compile", "max-autotune")}[beside]
    until = time() + budget if budget else 0.0
    asked = Asked(tuple(problems(checkout, levels or (1, 2), wanted)), until=until, beside=peers, **how)
    found: list[Row] = []
    with ahead(asked):
        for row in run(asked):
            found.append(row)
            if into is not None:
                with into.open("a", encoding="utf-8") as rows:
                    rows.write(json.dumps(row) + "\n")
            if not as_json:
                screen.lines([line(row)])
    counts = {"asked": len(asked.problems), **totals(found)}
    if not as_json:
        screen.lines([", ".join(f"{count} {name}" for name, count in counts.items())])
    wrong = any(row.get("right") is False for row in found)
    return Outcome(int(wrong), {"schema": SCHEMA, "device": asked.device, "problems": found, **counts})


def problems(checkout: Path, levels: Sequence[int], wanted: Sequence[str]) -> list[Problem]:
    """The problems, by level and number or in the order wanted. Raises ArgusError (E001) where there are none."""
    known = {(each.level, each.number): each for level in levels for each in _of_level(checkout, level)}
    chosen = list(known)
    if wanted:
        parts = [_WANTED.fullmatch(each) for each in wanted]
        named = [([int(part[1])] if part[1] else list(levels), int(part[2])) for part in parts if part]
        chosen = [(level, number) for among, number in named for level in among if (level, number) in known]
        parsed = len(named) == len(wanted)
        chosen = chosen if parsed else []
    if not chosen:
        which = " and ".join(map(str, levels))
        message = f"`{checkout}` has no such problem of level {which}"
        raise ArgusError(Diagnostic("E001", "error", message, help="name a checkout of KernelBench"))
    return [known[each] for each in dict.fromkeys(chosen)]


def _of_level(checkout: Path, level: int) -> list[Problem]:
    folder = next(
        (each for each in (checkout / "KernelBench", checkout) if (each / f"level{level}").is_dir()), checkout
    )
    matched = ((_NUMBER.fullmatch(path.name), path) for path in (folder / f"level{level}").glob("*.py"))
    found = [Problem(level, int(match[1]), str(path)) for match, path in matched if match]
    return sorted(found, key=lambda each: each.number)


def prepare(place: str, part: int) -> None:
    """What a process does that proves and builds ahead. It imports torch, which this one does not need."""
    import_module("argus.torch.kernelbench.ahead").main(place, part)


@contextmanager
def ahead(asked: Asked) -> Generator[None]:
    """Other processes prove and build kernels meanwhile; they are ended with the block."""
    with tempfile.TemporaryDirectory(prefix="argus-kernelbench-") as folder:
        place = Path(folder) / "asked.json"
        asked.write(place)
        started = [_SPAWN.Process(target=prepare, args=(str(place), part), daemon=True) for part in range(asked.jobs)]
        for each in started:
            each.start()
        try:
            yield
        finally:
            for each in started:
                each.kill()
                each.join()


# -- running -------------------------------------------------------------------------------------------------


def run(asked: Asked) -> Iterator[Row]:
    """A row for each problem, as the process finds it; one that ends it has a row that says so."""
    left = asked.problems
    while left and not (asked.until and time() > asked.until):
        ended: str | None = None
        for each in _run_in_a_process(evolve(asked, problems=left)):
            if isinstance(each, str):
                ended = each
                continue
            yield _named(left[0]) | each
            left = left[1:]
        if ended is not None and left:
            yield _named(left[0]) | {"error": ended}
            left = left[1:]


def _named(problem: Problem) -> Row:
    name = Path(problem.path).stem.partition("_")[2]
    return {"level": problem.level, "problem": problem.number, "name": name}


def _run_in_a_process(asked: Asked) -> Iterator[Row | str]:
    """The rows of the first problems, then, unless the process has come to the end, why it has not."""
    with tempfile.TemporaryDirectory(prefix="argus-kernelbench-") as folder:
        place, rows = Path(folder) / "asked.json", Path(folder) / "rows"
        asked.write(place)
        rows.touch()
        limit = _START + asked.seconds * len(asked.problems)
        with ThreadPoolExecutor(1) as pool, rows.open(encoding="utf-8") as written:
            process = pool.submit(run_command, (*WORKER, str(place), str(rows)), limit)
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
            yield _why(status, said, asked.seconds)


def _new(written: Any) -> Iterator[Row]:  # noqa: ANN401 reason: an open file
    """The lines that have come to their end since the last call."""
    while True:
        start = written.tell()
        text = written.readline()
        if not text.endswith("\n"):
            written.seek(start)
            return
        yield json.loads(text)


def _why(status: int, said: str, seconds: float) -> str:
    if status == -signal.SIGALRM:
        return f"it did not finish within {seconds:g} s, and its process was stopped"
    last = (said.strip().splitlines() or [""])[-1]
    return f"its process ended with status {status}: {last[:200]}"


# -- what is said --------------------------------------------------------------------------------------------


def line(row: Row) -> str:
    """One problem in a line."""
    start = f"{row['level']}.{row['problem']:<3} {row['name'][:44]:<44}"
    if row.get("error"):
        return f"{start} not run: {row['error']}"
    parts = ["proved" if row["proved"] else "in part", "right" if row["right"] else "WRONG"]
    parts += [f"error {max(row['errors']):.1e} (eager {max(row['eager_errors']):.1e})", f"{row['kernels']} kernels"]
    if row["against"] != ["float64"]:
        parts.append(f"against {' and '.join(row['against'])}")
    times: dict[str, float] = row.get("milliseconds", {})
    parts += [f"{name} {value:.3f} ms" for name, value in times.items()]
    if row["trivial"]:
        parts.append("a constant passes")
    if row["shapes_dropped"]:
        parts.append(f"{len(row['shapes'])} other shapes, not at {', '.join(row['shapes_dropped'])}")
    if row["eager"]:
        parts.append("eager torch: " + "; ".join(f"{name} ({why})" for name, why in row["eager"].items()))
    return f"{start} {', '.join(parts)}"


def totals(found: Sequence[Row]) -> dict[str, int]:
    """How many problems are proved without fallback, right, both, and how many did not run."""
    ran = [row for row in found if not row.get("error")]
    return {
        "problems": len(found),
        "proved": sum(row["proved"] for row in ran),
        "right": sum(row["right"] for row in ran),
        "proved and right": sum(row["proved"] and row["right"] for row in ran),
        "not run": len(found) - len(ran),
    }
