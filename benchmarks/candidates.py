"""Counts a search's candidates per processor second: `python benchmarks/candidates.py --trials 30`.

Runs `argus optimize PROBLEM --on model` in a subprocess, as a user would, with an empty cache and journal. Prints how
many candidates it judged, the seconds that passed, and the processor seconds of the command and its workers, start and
end included. Processor seconds hardly depend on what else the machine does: a search of 40 s on two idle processors has
80 of them at most. `--seconds` limits the search by time instead.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.search.events import Judged
from argus.search.journal import Journal


def processor_seconds() -> float:
    """Of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", default="gemm:4096x4096x4096")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    limit = parser.add_mutually_exclusive_group()
    limit.add_argument("--trials", type=int, default=30)
    limit.add_argument("--seconds", type=float)
    chosen = parser.parse_args()
    with TemporaryDirectory() as name:
        journal = Path(name, "runs.db")
        command = [sys.executable, "-m", "argus", "optimize", chosen.problem, "--target", chosen.target]
        command += ["--on", "model", "--workers", str(chosen.workers), "--seed", str(chosen.seed)]
        command += ["--journal", str(journal)]
        command += ["--trials", str(chosen.trials)] if chosen.seconds is None else []
        command += [] if chosen.seconds is None else ["--budget-seconds", f"{chosen.seconds:g}"]
        environment = {**os.environ, "XDG_CACHE_HOME": str(Path(name, "cache"))}
        begun, before = time.monotonic(), processor_seconds()
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603 reason: our own
        passed, used = time.monotonic() - begun, processor_seconds() - before
        with Journal(journal) as kept:
            judged = [each.judgement for each in kept.events("run-0001") if isinstance(each, Judged)]
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in Counter(each.outcome for each in judged).items())
    print(f"{chosen.problem} on {chosen.target}, {chosen.workers} workers: {len(judged)} candidates ({outcomes})")
    print(f"{passed:.1f} s, {used:.1f} processor seconds: {used / max(1, len(judged)):.2f} for each candidate")
    return 0


if __name__ == "__main__":
    sys.exit(main())
