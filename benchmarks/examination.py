"""Tests the bench harness on a GPU: `python benchmarks/examination.py build`, then `... run [--part files]` on the GPU.

build: compiles three shipped designs and the kernels of two files with references to build/examination, without a GPU.
run: tests each of them, and cheating variants of one design and both files. Kernels must pass and cheats be caught.
Writes verdicts and seconds to examination.json in `--out`; exits with 1 if a verdict is not as expected. --part:
designs or files only; files take about twenty seconds.
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

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.kernels.gemm import gemm
from argus.runtime.cuda.driver import find_driver
from argus.runtime.gpu.driver import GpuDriver
from argus.runtime.gpu.launch import LoadedKernel, load
from argus.search.bench_harness.bench import Call, Candidate, Operand
from argus.search.bench_harness.examine import examine
from argus.search.bench_harness.files import KernelOfFile
from argus.search.bench_harness.products import Product
from argus.search.bench_harness.subject import Subject
from argus.search.bench_harness.verdict import Caught, Passed, Plan
from argus.search.evaluation.gpu_bench import PRODUCT, GpuBench, SizeSources, bind_kernel
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.problem import gemm_of, problem_of
from argus.search.problems.workload import size_sources
from argus.search.tuning.measure import the_device
from argus.verifier.api import build

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "examination"
DESIGNS = ("cooperative", "pingpong", "split_2")
NON_BLOCKING = 1


TEXT = (ROOT / "tests" / "corpus" / "proved" / "slabs_by_ordinary_copies.py").read_text(encoding="utf-8")
FILES = {
    "product": (TEXT, "A @ B.T"),
    "positive": (
        TEXT.replace("acc.to(bf16)", "maximum(acc, 0.0).to(bf16)").replace(" loop, mma,", " loop, maximum, mma,"),
        "np.maximum(A @ B.T, 0)",
    ),
}
"""Kernels with their references; only the first has claims that specify its result."""
SIZES = "M=2048,N=2048,K=1024"


@frozen
class Case:
    """A test case. bind: makes a candidate of the kernel. cheat: makes a cheating candidate instead."""

    subject: Subject
    kernel: LoadedKernel
    bind: Callable[..., Candidate]
    cheat: Callable[[Case], Candidate] | None = None

    def candidate(self) -> Candidate:
        return self.bind(self.kernel) if self.cheat is None else self.cheat(self)


def remembered(case: Case) -> Candidate:
    """A cheat: caches the first result for each set of addresses and copies it in later calls."""
    honest, driver = case.bind(case.kernel), find_driver()
    kept: dict[tuple[Operand, ...], int] = {}

    def bind(*operands: Operand) -> Call:
        once, out = honest(*operands), operands[-1]

        def call() -> None:
            if operands in kept:
                driver.call("cuMemcpyDtoDAsync", out.address, kept[operands], out.bytes, 0)
                return
            once()
            kept[operands] = int(driver.call("cuMemAlloc", out.bytes))
            driver.call("cuMemcpyDtoDAsync", kept[operands], out.address, out.bytes, 0)

        return call

    return bind


def last_row_skipped(case: Case) -> Candidate:
    """A cheat: skips the last row of C, if there is more than one."""
    honest = case.bind(case.kernel)

    def bind(a: Operand, b: Operand, c: Operand) -> Call:
        fewer = [evolve(each, shape=(max(1, c.shape[0] - 1), each.shape[1])) for each in (a, c)]
        return honest(fewer[0], b, fewer[1])

    return bind


def other_stream(case: Case) -> Candidate:
    """A cheat: launches on a stream that the default stream does not synchronise with."""
    return case.bind(case.kernel, stream=find_driver().call("cuStreamCreate", NON_BLOCKING))


def repeated_skipped(case: Case) -> Candidate:
    """A cheat: skips every other call after the first 16."""
    honest = case.bind(case.kernel)
    made = [0]

    def bind(*operands: Operand) -> Call:
        once = honest(*operands)

        def call() -> None:
            made[0] += 1
            if made[0] < 16 or made[0] % 2:
                once()

        return call

    return bind


CHEATS: dict[str, Callable[[Case], Candidate]] = {
    each.__name__: each for each in (remembered, last_row_skipped, other_stream, repeated_skipped)
}


def build_all() -> None:
    for name in DESIGNS:
        print(build(gemm, directory=FOLDER / name, config=name).description)
    for name, (text, reference) in FILES.items():
        made = f"import numpy as np\n{text}\n\ndef reference(A, B):\n    return {reference}\n"
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
        (FOLDER / name / "kernel.py").write_text(made, encoding="utf-8")
        _, kernel = file_problem(name)
        print(build(kernel, directory=FOLDER / name).description)


def file_problem(name: str) -> tuple[KernelFile, Kernel]:
    """The problem of a file and its only kernel, without proof."""
    problem = problem_of(str(FOLDER / name / "kernel.py"), "sm_90a", SIZES)
    assert isinstance(problem, KernelFile)
    return problem, problem.exported[0].trace()


def cases(shape: str, part: str, driver: GpuDriver) -> dict[str, Case]:
    found: dict[str, Case] = {}
    if part != "files":
        subject = Product(gemm_of(f"gemm:{shape}", "sm_90a"))
        kernels = {name: load(next((FOLDER / name).glob("*.json")), driver) for name in DESIGNS}
        found = {name: Case(subject, each, partial(bind_kernel, source=PRODUCT)) for name, each in kernels.items()}
        found |= {name: evolve(found[DESIGNS[0]], cheat=each) for name, each in CHEATS.items()}
    if part != "designs":
        for name in FILES:
            problem, kernel = file_problem(name)
            subject = KernelOfFile(kernel, problem.sizes, problem.bounds_of(kernel), problem.reference)
            source = SizeSources(tuple(each.name for each in kernel.parameters), size_sources(kernel))
            loaded = load(next((FOLDER / name).glob("*.json")), driver)
            found[name] = Case(subject, loaded, partial(bind_kernel, source=source))
            found |= {f"{name} {cheat}": evolve(found[name], cheat=make) for cheat, make in CHEATS.items()}
    return found


def run(chosen: argparse.Namespace) -> int:
    card = GpuBench(the_device())
    card.device.check_runs("sm_90a")
    found: dict[str, dict[str, Any]] = {}
    for name, case in cases(chosen.shape, chosen.part, card.driver).items():
        begun = time.perf_counter()
        try:
            verdict = examine(case.candidate(), case.subject, card, Plan(secrets.randbits(64), rounds=chosen.rounds))
        except ArgusError as failed:
            found[name] = {"expected": False, "why": str(failed)}
            print(f"{name:44} FAILED   {failed}", flush=True)
            continue
        seconds = time.perf_counter() - begun
        expected = isinstance(verdict, Caught) == (case.cheat is not None)
        match verdict:
            case Passed(microseconds):
                told = {"microseconds": microseconds}
                gap = case.subject.bounds.gap(microseconds)
                text = f"passed   {microseconds:.4g} us, {gap:.3g} of the speed of light"
            case Caught(check, why):
                told = {"check": check, "outcome": verdict.outcome, "why": why}
                text = f"{verdict.outcome:8} {check}: {why}"
        found[name] = {"expected": expected, "seconds": seconds, "sizes": dict(case.subject.sizes), **told}
        print(f"{name:44} {text} ({seconds:.1f} s){'' if expected else '   NOT AS EXPECTED'}", flush=True)
    if chosen.out:
        chosen.out.mkdir(parents=True, exist_ok=True)
        data = {"device": card.device.name, "verdicts": found}
        (chosen.out / "examination.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 0 if all(each["expected"] for each in found.values()) else 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("build", "run"))
    parser.add_argument("--shape", default="4096x4096x4096")
    parser.add_argument("--part", choices=("all", "designs", "files"), default="all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    if chosen.what == "build":
        build_all()
        return
    sys.exit(run(chosen))


if __name__ == "__main__":
    main()
