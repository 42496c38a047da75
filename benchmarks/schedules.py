"""Runs correct kernels under many schedules: `python benchmarks/schedules.py [--random N] [--sizes N] [FILE]...`.

Each kernel with roles or barriers, of the named files or of tests/corpus/proved and tests/corpus/unknown, runs at its
smallest sizes of different shape under all directed schedules, and at these sizes under N random ones, with tags only.
A violation is a false alarm and is printed; there should be none. Times are of one process.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice, product
from pathlib import Path

from attrs import frozen

from argus.core.ir import Kernel
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import find_violations_strictly, promised_integers, uses_agents
from argus.interp.search.schedule import Schedule, directed
from argus.interp.search.search import sizes_in_order
from argus.interp.violation import UnsatisfiedPromiseError, Violation
from argus.verifier.loader import load

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "corpus"
Size = Mapping[str, int]


@frozen
class Alarm:
    """A violation reported for a correct kernel."""

    sizes: Size
    schedule: Schedule
    violation: Violation


@frozen
class Count:
    """The numbers of runs of one kernel, and their false alarms."""

    directed: int
    random: int
    alarms: tuple[Alarm, ...]


def right_kernels(files: Sequence[Path]) -> Iterator[Kernel]:
    """The kernels with mbarriers."""
    for file in files:
        for exported in load(str(file)):
            kernel = exported.trace()
            if uses_agents(kernel):
                yield kernel


def corpus() -> list[Path]:
    return [file for kind in ("proved", "unknown") for file in sorted((CORPUS / kind).glob("*.py"))]


def count(kernel: Kernel, sizes: int, random: int, seed: int) -> Count:
    """Run a kernel at `sizes` sizes under the directed schedules, and under `random` random ones."""
    few = list(islice((each for each in sizes_in_order(kernel) if _has_inputs(kernel, each)), sizes))
    planned = list(product(few, directed(kernel)))
    drawn = list(zip(cycle(few), (Schedule("mixed", seed + number) for number in range(random)), strict=False))
    prepared = Prepared(kernel)
    alarms = [
        Alarm(size, schedule, violation)
        for size, schedule in (*planned, *drawn)
        for violation in find_violations_strictly(prepared, size, schedule)
    ]
    return Count(len(planned), len(drawn), tuple(alarms))


def _has_inputs(kernel: Kernel, sizes: Mapping[str, int]) -> bool:
    """Whether integers that keep the promises are found at these sizes."""
    try:
        promised_integers(kernel, sizes, 0)
    except UnsatisfiedPromiseError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--random", type=int, default=1000)
    parser.add_argument("--sizes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    kernels = alarms = runs = 0
    for kernel in right_kernels(chosen.files or corpus()):
        start = time.perf_counter()
        found = count(kernel, chosen.sizes, chosen.random, chosen.seed)
        kernels, alarms, runs = kernels + 1, alarms + len(found.alarms), runs + found.directed + found.random
        where = Path(kernel.span.frames[0].file).stem if kernel.span.frames else kernel.name
        took = time.perf_counter() - start
        print(f"{where}: {found.directed} directed, {found.random} random, {len(found.alarms)} alarms, {took:.1f} s")
        for alarm in found.alarms[:3]:
            print(f"  {dict(alarm.sizes)} {alarm.schedule}: {alarm.violation.code} {alarm.violation.message}")
    print(f"{kernels} kernels, {runs} runs, {alarms} alarms")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
