"""Fuzzes with random small programs: `python benchmarks/fuzz.py programs|events|text [--count N] [--seed N]`.

programs: draws distinct programs of the families of property_tests/small, verifies them, and compares the verdict with
runs of the interpreter, as the property test does with fewer runs: a proved program at several sizes under all directed
schedules and random ones, with tags and values; a refuted one by its own run.
events: draws kernels with roles around a ring, correct and wrong, and compares the events that the proof extracts with
those of runs.
text: draws programs that are right by construction, and executes the emitted text of the proved ones on the CPU, see
`fuzz_text.py`. Programs that a journal (`--journal FILE`) holds are not run again; `--result FILE` stores the figures.
`--minutes M` limits the time. Fails if one disagrees.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.interp.search.schedule import Schedule, directed
from argus.interp.search.search import sizes_in_order
from argus.testing.mutants import spread_sizes
from argus.verifier.kernel import verify
from benchmarks.fuzz_text import texts
from property_tests.ring_events import difference, reading
from property_tests.small import ringing
from property_tests.small.program import Depth, Program, disagreement, draw
from property_tests.small.right import FAMILIES

_JOURNAL = Path("build/fuzz_text.journal")
_OFTEN = 1000
"""Number of programs between progress reports."""


def verdict_of(program: Program, seconds: float, depth: Depth) -> tuple[str, str]:
    """The verdict, and how a run contradicts it; empty if none does."""
    try:
        kernel = program.kernel()
    except ArgusError:
        return "rejected", ""
    report = verify(kernel, solver="z3", budget=Budget.about(seconds))
    return type(report.verdict).__name__.lower(), disagreement(program, kernel, report, depth)


def programs(count: int, seed: int, minutes: float, seconds: float, depth: Depth) -> int:
    """Draw `count` distinct programs; returns the number of disagreements."""
    drawn = random.Random(seed)  # noqa: S311 reason: a seed makes the figures repeatable
    seen: set[Program] = set()
    verdicts: Counter[str] = Counter()
    families: Counter[str] = Counter()
    wrong = 0
    start = time.monotonic()
    while len(seen) < count and time.monotonic() - start < 60 * minutes:
        program = draw(drawn.choice)
        if program in seen:
            continue
        seen.add(program)
        verdict, why = verdict_of(program, seconds, depth)
        verdicts[verdict] += 1
        families[type(program).__name__.lower()] += 1
        if why:
            wrong += 1
            print(f"DISAGREEMENT on {program}\n  {why}", flush=True)
        if len(seen) % _OFTEN == 0 and len(seen) < count:
            _report(verdicts, families, wrong, seed, time.monotonic() - start)
    _report(verdicts, families, wrong, seed, time.monotonic() - start)
    return wrong


def events(count: int, seed: int, minutes: float) -> int:
    """Draw `count` distinct kernels of a ring; returns the number whose runs differ from the extracted events."""
    drawn = random.Random(seed)  # noqa: S311 reason: as above
    seen: set[ringing.Ringing] = set()
    outcomes: Counter[str] = Counter()
    start = time.monotonic()
    while len(seen) < count and time.monotonic() - start < 60 * minutes:
        program = ringing.draw(drawn.choice)
        if program in seen:
            continue
        seen.add(program)
        outcome, why = _read(program.kernel(), drawn)
        outcomes[outcome] += 1
        if why:
            print(f"DISAGREEMENT on {program}\n  {why}", flush=True)
    shown = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(outcomes.items()))
    print(f"{len(seen):,} kernels of a ring, seed {seed}: {shown}; {time.monotonic() - start:.0f} s")
    return outcomes["run otherwise"]


def _read(kernel: Kernel, drawn: random.Random) -> tuple[str, str]:
    found = reading(kernel)
    if found is None:
        return "refused", ""
    schedules = directed(kernel)
    for size in spread_sizes(list(sizes_in_order(kernel)), 3):
        for schedule in (*drawn.sample(schedules, 2), Schedule("mixed", drawn.getrandbits(16))):
            why = difference(kernel, found, size, schedule)
            if why:
                return "run otherwise", f"{why} at {size} under {schedule}"
    return "run as read", ""


def _report(verdicts: Counter[str], families: Counter[str], wrong: int, seed: int, seconds: float) -> None:
    run = sum(verdicts.values())
    shares = ", ".join(f"{verdicts[kind]:,} {kind}" for kind in ("proved", "refuted", "unknown", "vacuous", "rejected"))
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(families.items()))
    print(f"{run:,} programs run, seed {seed}: {shares}; {wrong} disagreements")
    print(f"of {kinds}; {seconds:.0f} s, {1000 * seconds / max(1, run):.0f} ms per program", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["programs", "events", "text"])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seconds", type=float, default=1.0, help="the budget of a verification")
    parser.add_argument("--sizes", type=int, default=4, help="sizes at which a proved program is run")
    parser.add_argument("--journal", type=Path, default=_JOURNAL, help="of `text`: the programs that were run")
    parser.add_argument("--result", type=Path, help="of `text`: where to store the figures")
    parser.add_argument("--jobs", type=int, default=1, help="of `text`: processes")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES), help="of `text`")
    parser.add_argument("--add", action="store_true", help="of `text`: add to the stored figures, of another journal")
    chosen = parser.parse_args()
    if chosen.what == "events":
        return 1 if events(chosen.count, chosen.seed, chosen.minutes) else 0
    if chosen.what == "text":
        limits = (chosen.count, chosen.seed, chosen.minutes, chosen.seconds)
        files = (chosen.journal, chosen.jobs, chosen.result)
        return 1 if texts(*limits, *files, chosen.families, add=chosen.add) else 0
    depth = Depth(sizes=chosen.sizes, random=2, every=True)
    return 1 if programs(chosen.count, chosen.seed, chosen.minutes, chosen.seconds, depth) else 0


if __name__ == "__main__":
    sys.exit(main())
