"""Random small programs and their verdicts: `python benchmarks/fuzz.py programs [--count N] [--seed N] [--minutes M]`.

Distinct programs of the families of property_tests/small are drawn by a seed, verified, and the verdict is held to
runs of the interpreter, as the property test does with fewer runs: a proved program at several sizes under all
directed schedules and random ones, with tags and numbers; a refuted one by its own run. It fails if one disagrees.
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
from argus.core.query import Budget
from argus.verify import verify
from property_tests.small.program import Depth, Program, disagreement, draw


def judged(program: Program, seconds: float, depth: Depth) -> tuple[str, str]:
    """What the verdict is, and why runs contradict it."""
    try:
        kernel = program.kernel()
    except ArgusError:
        return "rejected", ""
    report = verify(kernel, solver="z3", budget=Budget(seconds=seconds))
    return type(report.verdict).__name__.lower(), disagreement(program, kernel, report, depth)


def programs(count: int, seed: int, minutes: float, seconds: float, depth: Depth) -> int:
    """Draw so many distinct programs; how many disagree."""
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
        verdict, why = judged(program, seconds, depth)
        verdicts[verdict] += 1
        families[type(program).__name__.lower()] += 1
        if why:
            wrong += 1
            print(f"DISAGREEMENT on {program}\n  {why}", flush=True)
    _told(verdicts, families, wrong, seed, time.monotonic() - start)
    return wrong


def _told(verdicts: Counter[str], families: Counter[str], wrong: int, seed: int, seconds: float) -> None:
    run = sum(verdicts.values())
    shares = ", ".join(f"{verdicts[kind]:,} {kind}" for kind in ("proved", "refuted", "unknown", "vacuous", "rejected"))
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(families.items()))
    print(f"{run:,} programs run, seed {seed}: {shares}; {wrong} disagreements")
    print(f"of {kinds}; {seconds:.0f} s, {1000 * seconds / max(1, run):.0f} ms a program")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["programs"])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seconds", type=float, default=1.0, help="the budget of a verification")
    parser.add_argument("--sizes", type=int, default=4, help="sizes at which a proved program is run")
    chosen = parser.parse_args()
    depth = Depth(sizes=chosen.sizes, random=2, every=True)
    return 1 if programs(chosen.count, chosen.seed, chosen.minutes, chosen.seconds, depth) else 0


if __name__ == "__main__":
    sys.exit(main())
