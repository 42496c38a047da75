"""Faults seeded into Argus's own source, and the share of them that each tier of tests kills.

    python benchmarks/seeded_faults.py draw FOLDER [--count N] [--seed N]      faults of all packages
    python benchmarks/seeded_faults.py probe FOLDER --tier default|all         runs the tests: which see which fault
    python benchmarks/seeded_faults.py judge FOLDER --tier default|all         runs those, quickest first; resumes
    python benchmarks/seeded_faults.py report FOLDER [--out FILE]              the share that each tier kills

The default tier comes first: what it kills, all tests kill. `report` ends with exit code 1 if the default tier loses
more than 3 % of what all tests kill.

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
from itertools import accumulate
from pathlib import Path
from queue import Empty, SimpleQueue
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
OTHERS = 60.0
"""Seconds of tests that are run beside those that see a fault."""
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


def probing(folder: Path, tier: Tier, workers: int) -> None:
    """Run a tier with probes."""
    drawn = json.loads((folder / "faults.json").read_text())
    notes = folder.resolve() / f"seen-{tier}"
    notes.mkdir()
    with work_tree(drawn["commit"]) as tree, tempfile.TemporaryDirectory() as hook:
        (Path(hook) / "sitecustomize.py").write_text("from faults.probe import install\ninstall()\n")
        (folder / "sites.json").write_text(json.dumps({"root": str(tree), "sites": drawn["faults"]}))
        environment = {
            "PYTHONPATH": os.pathsep.join((hook, str(Path(__file__).parent), str(tree))),
            probe.SITES: str(folder.resolve() / "sites.json"),
            probe.SEEN: str(notes),
            plugin.TIMES: str(folder.resolve() / f"times-{tier}.jsonl"),
        }
        spread = ("-n", str(workers), "--dist", "worksteal")
        code = pytest(tree, ("--tier", tier, "-p", "faults.plugin", *spread), environment)
        print(f"tier {tier} with probes: exit code {code}")


@frozen
class Seen:
    """What a run with probes showed.

    seconds: of each test that passed. of: for each fault, the tests that see it, and files that see it when they are
    imported.
    """

    seconds: Mapping[str, float]
    of: Mapping[int, frozenset[str]]

    def tests(self, number: int, site: Site) -> list[str]:
        """The tests that can kill a fault: those that see it, quickest first, then the others of their files.

        The others belong to them since a fixture or a memo filled by one test may hide the place from the next. A place
        that runs when a module of Argus is imported is seen once a process, by whichever file comes first: the tests of
        the folder that mirrors the module belong to it too. Of the others the quickest, up to OTHERS seconds in all.
        """
        direct = self.of.get(number, frozenset())
        files = {test.partition("::")[0] for test in direct}
        folder = mirrored(site) if any("::" not in test for test in direct) else None
        near = [t for t in self.seconds if t.partition("::")[0] in files or (folder and t.startswith(folder))]
        ordered = sorted(near, key=lambda test: self.seconds[test])
        others = [test for test in ordered if test not in direct]
        spent = accumulate(self.seconds[test] for test in others)
        others = [test for test, total in zip(others, spent, strict=True) if total <= OTHERS]
        return [test for test in ordered if test in direct] + others


def mirrored(site: Site) -> str:
    """The folder of the tests of a module, or the nearest one around it."""
    folder = Path("tests", *Path(site.file).parts[1:-1])
    while not (ROOT / folder).is_dir():
        folder = folder.parent
    return f"{folder.as_posix()}/"


def seen(folder: Path, tier: Tier) -> Seen:
    rows = _rows(folder / f"times-{tier}.jsonl")
    notes = [line for file in (folder / f"seen-{tier}").glob("*.txt") for line in file.read_text().splitlines()]
    of: dict[int, set[str]] = defaultdict(set)
    for number, test in (line.split("\t") for line in notes):
        of[int(number)].add(test)
    return Seen(
        {row["test"]: row["seconds"] for row in rows if not row["failed"]},
        {number: frozenset(tests) for number, tests in of.items()},
    )


def judging(folder: Path, tier: Tier, workers: int, minutes: float) -> None:
    """Run what can kill each fault that the tiers before let live, and append what became of it to the journal."""
    drawn = json.loads((folder / "faults.json").read_text())
    journal = folder / "journal.jsonl"
    rows = _rows(journal)
    done = {row["fault"] for row in rows if row["killed"] or row["tier"] == tier}
    waiting = SimpleQueue[int]()
    for number in range(len(drawn["faults"])):
        if number not in done:
            waiting.put(number)
    shown, end = seen(folder, tier), time.monotonic() + 60 * minutes

    def work() -> None:
        with work_tree(drawn["commit"]) as tree:
            while time.monotonic() < end:
                try:
                    number = waiting.get_nowait()
                except Empty:
                    return
                site = Site(**drawn["faults"][number])
                tests = shown.tests(number, site)
                killed = is_killed(tree, site, tests, tier)
                with journal.open("a") as file:
                    row = {"fault": number, "tier": tier, "killed": killed, "tests": len(tests)}
                    file.write(json.dumps(row) + "\n")

    with ThreadPoolExecutor(workers) as pool:
        for each in [pool.submit(work) for _ in range(workers)]:
            each.result()


def is_killed(tree: Path, site: Site, tests: Sequence[str], tier: Tier) -> bool:
    """Whether one of the tests fails with the fault in the work tree."""
    file = tree / site.file
    original = file.read_text(encoding="utf-8")
    file.write_text(site.applied(original), encoding="utf-8")
    try:
        return fails(tree, tests, tier)
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
    journal = _rows(folder / "journal.jsonl")
    killed = {
        tier: {row["fault"] for row in journal if row["killed"] and row["tier"] == tier} for tier in ("default", "all")
    }
    kinds: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for number in {row["fault"] for row in journal}:
        count = kinds[drawn["faults"][number]["kind"]]
        count.update(("drawn",))
        count.update(("default", "all") if number in killed["default"] else ("all",) if number in killed["all"] else ())
    total = sum(kinds.values(), Counter[str]())
    for name, count in (*kinds.items(), ("all", total)):
        print(f"{name:15} {count['drawn']:4} drawn, killed {count['default']:4} (default tier) {count['all']:4} (all)")
    lost = 1 - total["default"] / max(total["all"], 1)
    judged = {tier: len({row["fault"] for row in journal if row["tier"] == tier}) for tier in ("default", "all")}
    print(f"judged {judged} of {len(drawn['faults'])}; the default tier loses {lost:.1%} of what all tests kill")
    if out is not None:
        living = [number for number in sorted({row["fault"] for row in journal}) if number not in killed["default"]]
        rows = [{**drawn["faults"][number], "killed by all": number in killed["all"]} for number in living]
        found = {"commit": drawn["commit"], "kinds": kinds, "total": total, "not killed by the default tier": rows}
        out.write_text(json.dumps(found, indent=1) + "\n")
    return int(lost > LOSS)


def _rows(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description="faults seeded into Argus's own source, and which tests kill them")
    parser.add_argument("step", choices=("draw", "probe", "judge", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=170)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tier", choices=("default", "all"), default="default")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    match given.step:
        case "draw":
            drawing(given.folder, given.count, given.seed)
        case "probe":
            probing(given.folder, given.tier, given.workers)
        case "judge":
            judging(given.folder, given.tier, given.workers, given.minutes)
        case _:
            return reporting(given.folder, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
