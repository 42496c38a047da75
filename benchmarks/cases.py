"""Runs the cases of a benchmark in several processes within a time limit, and goes on later with those not reached."""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any

from attrs import frozen

from argus.core.ir import Kernel, Program
from argus.emit.hip.text import compiled_texts
from benchmarks.shipped import configurations, families

ROOT = Path(__file__).resolve().parent.parent
Row = dict[str, Any]
Answer = tuple[str, list[Row]]
Work = Callable[[str, str], Answer | None]
"""What is done of a case, given its name and the digest of what an earlier run read ("" without one): the digest of
what it reads now and its rows, or None if the digests are equal."""


@frozen
class Limits:
    """processes: that run at once. seconds: after which no more answers are awaited. journal: a file of lines of JSON,
    one for each case done, of this run and of earlier ones; None keeps nothing.
    """

    processes: int = 1
    seconds: float = float("inf")
    journal: Path | None = None


@frozen
class Found:
    """rows: of the cases that were done, in their order. missing: cases that were not reached. failed: why a case ended
    with an exception.
    """

    rows: list[Row]
    missing: list[str]
    failed: dict[str, str]

    def counts(self) -> Row:
        """What a result file says of cases without rows; nothing where there are none."""
        return {key: found for key, found in (("not reached", self.missing), ("failed", self.failed)) if found}

    def printed(self) -> Found:
        for case, why in self.failed.items():
            print(f"{case}: {why}")
        if self.missing:
            print(f"not reached within the time limit: {len(self.missing)} cases, the first {self.missing[0]}")
        return self


def add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--processes", type=int, default=1, help="cases that run at once")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time limit, after which cases are left")
    parser.add_argument("--journal", type=Path, help="file of what was done, with which a later run goes on")


def limits_of(given: argparse.Namespace) -> Limits:
    return Limits(given.processes, given.seconds, given.journal)


def over_cases(work: Work, cases: Sequence[str], limits: Limits) -> Found:
    """Do every case that the time suffices for. Cases of the journal whose digest is the same are not done again."""
    known = {} if limits.journal is None else dict(_journal(limits.journal))
    done: dict[str, list[Row]] = {}
    failed: dict[str, str] = {}
    for case, answer, why in _answers(partial(_tried, work, known), cases, limits):
        if why:
            failed[case] = why
            continue
        digest, rows = known[case] if answer is None else answer
        done[case] = rows
        if answer is not None and limits.journal is not None:
            with limits.journal.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"case": case, "digest": digest, "rows": rows}) + "\n")
    missing = [case for case in cases if case not in done and case not in failed]
    return Found([row for case in cases for row in done.get(case, ())], missing, failed).printed()


def _answers(
    tried: Callable[[str], tuple[str, Answer | None, str]], cases: Sequence[str], limits: Limits
) -> Iterator[tuple[str, Answer | None, str]]:
    """In the order in which they come; processes that still run at the end of the time are ended."""
    until = monotonic() + limits.seconds
    if limits.processes == 1:
        for case in cases:
            if monotonic() > until:
                return
            yield tried(case)
        return
    with multiprocessing.get_context("fork").Pool(limits.processes) as pool:
        found = pool.imap_unordered(tried, cases)
        for _ in cases:
            try:
                yield found.next(timeout=max(0.01, until - monotonic()) if limits.seconds < float("inf") else None)
            except multiprocessing.TimeoutError:
                return


def _tried(work: Work, known: Mapping[str, Answer], case: str) -> tuple[str, Answer | None, str]:
    try:
        return case, work(case, known[case][0] if case in known else ""), ""
    except Exception as problem:  # noqa: BLE001 reason: whatever it is, the other cases go on, and it is reported
        said = str(problem).strip().splitlines() or [""]
        return case, None, f"{type(problem).__name__}: {said[0]}"


def _journal(path: Path) -> Iterator[tuple[str, Answer]]:
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        entry = json.loads(line)
        yield entry["case"], (entry["digest"], entry["rows"])


def digest_of(kernels: Sequence[Kernel], *folders: str, without: str = "") -> str:
    """Of the texts that builds of gfx942 kernels choose from, and of the sources in folders of `argus` but for one."""
    found = sha256()
    for kernel in kernels:
        for text in compiled_texts(kernel):
            found.update(text.encode())
    sources = ROOT / "argus"
    for folder in folders:
        for path in sorted((sources / folder).rglob("*.py")):
            if not without or not path.is_relative_to(sources / without):
                found.update(path.read_bytes())
    return found.hexdigest()[:16]


def shipped_configurations() -> Iterator[tuple[str, str]]:
    """The family and the name of every configuration of `argus.kernels` for gfx942."""
    for name, configs in configurations("gfx942").items():
        yield from ((name, config) for config in configs)


def shipped_cases() -> list[str]:
    """FAMILY-CONFIG of every configuration, those of kernels with matrix instructions first: they take longest."""
    every = (f"{family}-{config}" for family, config in shipped_configurations())
    return sorted(every, key=lambda case: case.partition("-")[2].startswith("rows"))


def kernels_of_case(case: str) -> tuple[Kernel, ...]:
    family, _, config = case.partition("-")
    return kernels_of(dict(families())[family].trace(config))


def kernels_of(made: Kernel | Program) -> tuple[Kernel, ...]:
    return (made,) if isinstance(made, Kernel) else tuple(launch.kernel for launch in made.launches)
