"""The examination on a GPU: `python benchmarks/examination.py build`, then `... run [--shape MxNxK]` on the GPU.

build: compiles three shipped designs into build/examination; needs no GPU. run: examines each of them, and one of them
in the hands of cheats. A design must pass and a cheat be caught; the verdicts and what they took go to
examination.json in `--out`. It exits with 1 where a verdict is not as expected.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from argus.api import build
from argus.core.diagnostic import ArgusError
from argus.kernels.gemm import gemm
from argus.optimizer.card import Card, candidate
from argus.optimizer.examination.bench import Call, Candidate, Operand
from argus.optimizer.examination.examine import examine
from argus.optimizer.examination.verdict import Caught, Passed, Plan
from argus.optimizer.problem import problem_of
from argus.runtime.cuda import Loaded, load
from argus.tuning.measure import the_device

FOLDER = Path(__file__).resolve().parent.parent / "build" / "examination"
DESIGNS = ("cooperative", "pingpong", "split_2")
NON_BLOCKING = 1
Make = Callable[[Loaded], Candidate]


def remembered(kernel: Loaded) -> Candidate:
    """Copies the first result of a place in memory whenever it is called for that place again."""
    honest, driver = candidate(kernel), kernel.driver
    kept: dict[tuple[Operand, ...], int] = {}

    def bind(a: Operand, b: Operand, c: Operand) -> Call:
        once = honest(a, b, c)

        def call() -> None:
            if (a, b, c) in kept:
                driver.call("cuMemcpyDtoDAsync", c.address, kept[a, b, c], c.bytes, 0)
                return
            once()
            kept[a, b, c] = int(driver.call("cuMemAlloc", c.bytes))
            driver.call("cuMemcpyDtoDAsync", kept[a, b, c], c.address, c.bytes, 0)

        return call

    return bind


def last_row_skipped(kernel: Loaded) -> Candidate:
    """One row less, of more than one."""
    honest = candidate(kernel)

    def bind(a: Operand, b: Operand, c: Operand) -> Call:
        rows = max(1, c.shape[0] - 1)
        return honest(Operand(a.address, (rows, a.shape[1])), b, Operand(c.address, (rows, c.shape[1])))

    return bind


def other_stream(kernel: Loaded) -> Candidate:
    """All work on a stream that the default stream does not wait for."""
    return candidate(kernel, kernel.driver.call("cuStreamCreate", NON_BLOCKING))


def repeated_skipped(kernel: Loaded) -> Candidate:
    """Every other call is left out once there were many."""
    honest = candidate(kernel)
    made = [0]

    def bind(a: Operand, b: Operand, c: Operand) -> Call:
        once = honest(a, b, c)

        def call() -> None:
            made[0] += 1
            if made[0] < 16 or made[0] % 2:
                once()

        return call

    return bind


CHEATS: dict[str, Make] = {
    each.__name__: each for each in (remembered, last_row_skipped, other_stream, repeated_skipped)
}


def built() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in DESIGNS:
        print(build(gemm, directory=FOLDER / name, config=name).description)


def run(chosen: argparse.Namespace) -> int:
    problem = problem_of(f"gemm:{chosen.shape}", "sm_90a")
    card = Card(the_device())
    card.device.check_runs("sm_90a")
    kernels = {name: load(next((FOLDER / name).glob("*.json")), card.driver) for name in DESIGNS}
    cases: dict[str, Callable[[], Candidate]] = {name: partial(candidate, each) for name, each in kernels.items()}
    cases |= {name: partial(make, kernels[DESIGNS[0]]) for name, make in CHEATS.items()}
    found: dict[str, dict[str, Any]] = {}
    for name, make in cases.items():
        begun = time.perf_counter()
        try:
            verdict = examine(make(), problem, card, Plan(secrets.randbits(64), rounds=chosen.rounds))
        except ArgusError as failed:
            found[name] = {"expected": False, "why": str(failed)}
            print(f"{name:24} FAILED   {failed}", flush=True)
            continue
        seconds = time.perf_counter() - begun
        expected = isinstance(verdict, Caught) == (name in CHEATS)
        match verdict:
            case Passed(microseconds):
                told = {"microseconds": microseconds}
                text = f"passed   {microseconds:.4g} us, {problem.bounds.gap(microseconds):.3g} of the speed of light"
            case Caught(check, why):
                told = {"check": check, "outcome": verdict.outcome, "why": why}
                text = f"{verdict.outcome:8} {check}: {why}"
        found[name] = {"expected": expected, "seconds": seconds, **told}
        print(f"{name:24} {text} ({seconds:.1f} s){'' if expected else '   NOT AS EXPECTED'}", flush=True)
    if chosen.out:
        chosen.out.mkdir(parents=True, exist_ok=True)
        data = {"device": card.device.name, "problem": str(problem), "verdicts": found}
        (chosen.out / "examination.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 0 if all(each["expected"] for each in found.values()) else 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("build", "run"))
    parser.add_argument("--shape", default="4096x4096x4096")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    if chosen.what == "build":
        built()
        return
    sys.exit(run(chosen))


if __name__ == "__main__":
    main()
