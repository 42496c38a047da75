"""Counts false flags of cheating beside a busy host, on the simulated bench: honest candidates, and the known cheats.

`python benchmarks/busy_host.py` times 1,000 honest candidates, with and without repeats, and examines each known cheat
once. The host waits for a processor before readings of its clock and before launches, for exponentially distributed
times. Exit code 1 for a false flag or a cheat that passes. No clock is read.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from argus.search.bench_harness.examine import examine, measure, run_to_end
from argus.search.bench_harness.products import Product
from argus.search.bench_harness.session import session
from argus.search.bench_harness.verdict import Caught, Passed, Plan, Verdict
from argus.search.problems.problem import Gemm
from argus.testing.simulated import Simulated, SimulatedBench
from tests.search.bench_harness.candidates import Candidate
from tests.search.bench_harness.test_cheats import CAUGHT_BY, PROBLEM

SMALL = Product(Gemm(32, 32, 256, "bf16", "sm_90a"))
MEMORY = 4 << 20
PACES = (1.05, 1.3, 2.0, 5.0)
"""Times of honest candidates over the device's lower bound."""


@frozen
class Load:
    """waits, stalls: shares of clock readings and of launches that wait. mean: microseconds of a wait."""

    name: str
    waits: float
    stalls: float
    mean: float


LOADS = (
    Load("idle", 0.0, 0.0, 0.0),
    Load("readings wait", 0.5, 0.0, 2000.0),
    Load("launches wait", 0.0, 0.02, 2000.0),
    Load("both wait", 0.2, 0.02, 2000.0),
    Load("short waits", 0.5, 0.05, 500.0),
)


def device(load: Load, seed: int, memory: int) -> Simulated:
    """A simulated device of a host with this load."""
    draws = np.random.default_rng([seed, 1])

    def late(share: float) -> float:
        return float(draws.exponential(load.mean)) if draws.random() < share else 0.0

    return Simulated(
        np.zeros(memory, np.uint8),
        noise=0.005,
        waits=lambda: late(load.waits),
        stalls=lambda: late(load.stalls),
        generator=np.random.default_rng([seed, 2]),
    )


def honest(load: Load, seed: int, tries: int) -> tuple[Verdict, float]:
    """The verdict on an honest candidate, and its true time in microseconds."""
    made, pace = device(load, seed, MEMORY), PACES[seed % len(PACES)]
    bench = SimulatedBench(made)
    plan = Plan(seed, rounds=3, tries=tries, most_calls=4)
    with session(bench, plan, SMALL) as opened:
        return run_to_end(measure(opened, Candidate(made, pace))), pace * bench.least(SMALL)


def honest_rows(count: int) -> Iterator[tuple[str, int]]:
    """A line for each load and number of tries, with the number of false flags where timing is repeated."""
    tries = Plan(0).tries
    for load in LOADS:
        for most in (1, tries):
            found = [honest(load, seed, most) for seed in range(count // len(LOADS))]
            flags = Counter(each.check for each, _ in found if isinstance(each, Caught))
            off = max(abs(each.microseconds / true - 1) for each, true in found if isinstance(each, Passed))
            told = ", ".join(f"{number} {check}" for check, number in flags.items()) or "none"
            row = (
                f"{load.name:14} tries {most}: {len(found)} honest, flagged: {told}; largest error of a time {off:.1%}"
            )
            yield row, flags.total() if most == tries else 0


def cheats_that_pass(load: Load) -> list[str]:
    """Names of the known cheats that pass beside this load."""
    plan = Plan(8_128, seeds=2, rounds=3, most_calls=4)
    made = {kind: device(load, number, 64 << 20) for number, kind in enumerate(CAUGHT_BY)}
    found = {kind: examine(kind(each), PROBLEM, SimulatedBench(each), plan) for kind, each in made.items()}
    return [kind.__name__ for kind, verdict in found.items() if isinstance(verdict, Passed)]


@click.command()
@click.option("--candidates", default=1000, show_default=True, help="Number of honest candidates, of all loads.")
def main(candidates: int) -> None:
    """False flags and missed cheats beside a busy host."""
    false = 0
    for row, flags in honest_rows(candidates):
        print(row, flush=True)
        false += flags
    missed = cheats_that_pass(LOADS[3])
    caught = f"{len(CAUGHT_BY) - len(missed)} of {len(CAUGHT_BY)}"
    print(f"false flags: {false} of {candidates}; cheats caught beside load: {caught} {' '.join(missed)}")
    sys.exit(bool(false or missed))


if __name__ == "__main__":
    main()
