"""Faults seeded into Argus's own source, and the share of them that each tier of tests kills.

    python benchmarks/seeded_faults.py draw FOLDER [--count N] [--seed N]      faults of all packages
    python benchmarks/seeded_faults.py probe FOLDER [--workers N]              runs all tests: which see which fault
    python benchmarks/seeded_faults.py judge FOLDER [--minutes N]              runs those, quickest first; resumes
    python benchmarks/seeded_faults.py report FOLDER [--out FILE]              the share that each tier kills

`report` ends with exit code 1 if the default tier loses more than 3 % of what all tests kill.

A fault that no test of a tier sees (`benchmarks/faults/probe.py`) survives it without a run. The source is that of the
commit checked out, in work trees of Git of their own; type checking, which kills some of these faults too, is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Literal

from attrs import asdict, frozen
from faults import plugin, probe
from faults.sites import KINDS, Site, draw

ROOT = Path(__file__).resolve().parent.parent
Tier = Literal["default", "all"]
Row = dict[str, Any]
LOSS = 0.03
"""Of the faults that the full tier kills, what the default tier may let live."""
SECONDS = 900.0
"""A run of tests that takes longer hangs: the fault is killed."""
BATCH = 400
"""Tests that one run takes, quickest first, before the next are asked."""


def pytest(
    tree: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    seconds: float | None = None,
    output: IO[str] | None = None,
) -> int:
    """Pytest's exit code in a work tree; 124 where it ran out of time."""
    command = (str(ROOT / ".venv/bin/python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)
    with subprocess.Popen(  # noqa: S603 reason: our own tests
        command,
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), **environment},
        stdout=output or subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as running:
        try:
            return running.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            return 124


@contextmanager
def work_tree(commit: str) -> Generator[Path]:
    """A checkout of a commit, with the environment of this one."""
    with tempfile.TemporaryDirectory(prefix="argus-faults-") as folder:
        tree = Path(folder) / "tree"
        git("worktree", "add", "--detach", "--quiet", str(tree), commit)
        (tree / ".venv").symlink_to(ROOT / ".venv")
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def git(*arguments: str) -> str:
    command = ("git", "-C", str(ROOT), *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 reason: fixed


def drawing(folder: Path, count: int, seed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    commit = git("rev-parse", "HEAD")
    with work_tree(commit) as tree:
        faults = [asdict(site) for site in draw(tree, count, seed)]
    (folder / "faults.json").write_text(json.dumps({"commit": commit, "seed": seed, "faults": faults}, indent=1))
    print(f"{len(faults)} faults of {commit[:12]}: {dict(Counter(fault['kind'] for fault in faults))}")


def probing(folder: Path, workers: int) -> None:
    """Run the full tier with probes, and list what the default tier runs."""
    drawn = json.loads((folder / "faults.json").read_text())
    seen = folder.resolve() / "seen"
    seen.mkdir()
    with work_tree(drawn["commit"]) as tree, tempfile.TemporaryDirectory() as hook:
        (Path(hook) / "sitecustomize.py").write_text("from faults.probe import install\ninstall()\n")
        (folder / "sites.json").write_text(json.dumps({"root": str(tree), "sites": drawn["faults"]}))
        environment = {
            "PYTHONPATH": os.pathsep.join((hook, str(Path(__file__).parent), str(tree))),
            probe.SITES: str(folder.resolve() / "sites.json"),
            probe.SEEN: str(seen),
            plugin.TIMES: str(folder.resolve() / "times.jsonl"),
        }
        spread = ("-n", str(workers), "--dist", "worksteal")
        code = pytest(tree, ("--tier", "all", "-p", "faults.plugin", *spread), environment)
        print(f"the full tier with probes: exit code {code}")
        collected = folder.resolve() / "default.txt"
        with collected.open("w") as file:
            pytest(tree, ("--collect-only",), {"PYTHONPATH": str(tree)}, output=file)


@frozen
class Seen:
    """What the run with probes showed.

    seconds: of each test that passed. default: the tests of the default tier. of: for each fault, the tests that see
    it, and files that see it when they are imported.
    """

    seconds: Mapping[str, float]
    default: frozenset[str]
    of: Mapping[int, frozenset[str]]

    def tests(self, number: int, tier: Tier) -> list[str]:
        """The tests of a tier that can kill a fault: those that see it, quickest first, then the others of their files.

        The others belong to them since a fixture or a memo filled by one test may hide the place from the next.
        """
        files = {test.partition("::")[0] for test in self.of.get(number, ())}
        found = [test for test in self.seconds if test.partition("::")[0] in files]
        if tier == "default":
            found = [test for test in found if test in self.default]
        direct = self.of.get(number, frozenset())
        return sorted(found, key=lambda test: (test not in direct, self.seconds[test]))


def seen(folder: Path) -> Seen:
    rows = [json.loads(line) for line in (folder / "times.jsonl").read_text().splitlines()]
    lines = [line.split("\t") for file in (folder / "seen").glob("*.txt") for line in file.read_text().splitlines()]
    of: dict[int, set[str]] = defaultdict(set)
    for number, test in lines:
        of[int(number)].add(test)
    return Seen(
        {row["test"]: row["seconds"] for row in rows if not row["failed"]},
        frozenset(line for line in (folder / "default.txt").read_text().splitlines() if "::" in line),
        {number: frozenset(tests) for number, tests in of.items()},
    )


def judging(folder: Path, workers: int, minutes: float) -> None:
    """Run what can kill each fault, and append what became of it to the journal."""
    drawn = json.loads((folder / "faults.json").read_text())
    journal = folder / "journal.jsonl"
    done = {row["fault"] for row in _rows(journal)}
    waiting = SimpleQueue[int]()
    for number in range(len(drawn["faults"])):
        if number not in done:
            waiting.put(number)
    shown, end = seen(folder), time.monotonic() + 60 * minutes

    def work() -> None:
        with work_tree(drawn["commit"]) as tree:
            while not waiting.empty() and time.monotonic() < end:
                number = waiting.get()
                row = {"fault": number, **judged(tree, Site(**drawn["faults"][number]), number, shown)}
                with journal.open("a") as file:
                    file.write(json.dumps(row) + "\n")

    with ThreadPoolExecutor(workers) as pool:
        for each in [pool.submit(work) for _ in range(workers)]:
            each.result()


def judged(tree: Path, site: Site, number: int, shown: Seen) -> Row:
    """What kills a fault: `default` if a test of the default tier fails, `all` if one of the others does, or none."""
    file = tree / site.file
    original = file.read_text(encoding="utf-8")
    file.write_text(site.applied(original), encoding="utf-8")
    try:
        tiers: tuple[Tier, ...] = ("default", "all")
        for tier in tiers:
            tests = shown.tests(number, tier)
            if tests and fails(tree, tests, tier):
                return {"killed": tier, "tests": len(tests)}
        return {"killed": None, "tests": len(shown.tests(number, "all"))}
    finally:
        file.write_text(original, encoding="utf-8")


def fails(tree: Path, tests: Sequence[str], tier: Tier) -> bool:
    """Whether one of the tests fails, or hangs."""
    for start in range(0, len(tests), BATCH):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as named:
            named.write("\n".join(tests[start : start + BATCH]))
            named.flush()
            if pytest(tree, ("-x", "--tier", tier, f"@{named.name}"), {}, seconds=SECONDS) != 0:
                return True
    return False


def reporting(folder: Path, out: Path | None) -> int:
    drawn = json.loads((folder / "faults.json").read_text())
    rows = {row["fault"]: row for row in _rows(folder / "journal.jsonl")}
    kinds: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for number, row in rows.items():
        kinds[drawn["faults"][number]["kind"]].update(["drawn", "all"] if row["killed"] == "all" else ["drawn"])
        if row["killed"] == "default":
            kinds[drawn["faults"][number]["kind"]].update(["default", "all"])
    total = sum(kinds.values(), Counter[str]())
    for name, count in (*kinds.items(), ("all", total)):
        print(f"{name:15} {count['drawn']:4} drawn, killed {count['default']:4} (default tier) {count['all']:4} (all)")
    lost = 1 - total["default"] / max(total["all"], 1)
    print(f"judged {len(rows)} of {len(drawn['faults'])}; the default tier loses {lost:.1%} of what all tests kill")
    if out is not None:
        survivors = [{**drawn["faults"][n], **row} for n, row in sorted(rows.items()) if row["killed"] != "default"]
        out.write_text(
            json.dumps(
                {"commit": drawn["commit"], "kinds": kinds, "total": total, "not by default": survivors}, indent=1
            )
            + "\n"
        )
    return int(lost > LOSS)


def _rows(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description="faults seeded into Argus's own source, and which tests kill them")
    parser.add_argument("step", choices=("draw", "probe", "judge", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=170)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    match given.step:
        case "draw":
            drawing(given.folder, given.count, given.seed)
        case "probe":
            probing(given.folder, given.workers)
        case "judge":
            judging(given.folder, given.workers, given.minutes)
        case _:
            return reporting(given.folder, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
