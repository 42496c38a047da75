"""The demo: on both targets, proves a kernel, refutes a broken one, runs the kernel and compiles it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Literal

from attrs import frozen

from argus.cli.run_text import lines
from argus.cli.screen import Screen
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.verdict import Proved, Refuted
from argus.kernels.gemm import gemm
from argus.report.summary import artifact_lines
from argus.runtime.run import run as run_kernel
from argus.verifier.api import build
from argus.verifier.kernel import verify
from argus.verifier.loader import load

Outcome = Literal["good", "open", "wrong", "not done"]
CODES: dict[Outcome, int] = {"good": 0, "wrong": 1, "open": 2, "not done": 3}
_WORST_FIRST: tuple[Outcome, ...] = ("wrong", "not done", "open")
SIZES = {"M": 150, "N": 136, "K": 72}
"""No size is a multiple of a tile."""
STEPS = 4


@frozen
class Side:
    """One target: its shipped kernel with its name on the command line, and a broken copy.

    fault, code: what is wrong with the twin, and the invariant that is refuted. text: the language emitted.
    """

    machine: str
    named: str
    kernel: Kernel
    twin: Path
    fault: str
    code: str
    text: str


def sides() -> tuple[Side, Side]:
    """The demo on MI300X, then on H200."""
    here = Path(__file__)
    return (
        Side(
            "MI300X",
            "argus.kernels.gemm:gemm_cdna3",
            gemm.trace("cdna3"),
            here.with_name("broken.py"),
            "without the barrier at the end of a loop iteration",
            "I5",
            "HIP",
        ),
        Side(
            "H200",
            "argus.kernels.gemm:gemm_pingpong",
            gemm.trace("pingpong"),
            here.with_name("broken_hopper.py"),
            "that releases a stage before it waits for the wgmma that reads it",
            "I10",
            "CUDA",
        ),
    )


def run(screen: Screen, directory: Path) -> int:
    """Run all steps; returns 1 if one went wrong, else 3 if one was not done, else 2 if one is not proved, else 0.

    directory: the folder for artefacts.
    """
    start = perf_counter()
    outcomes = list(_outcomes(screen, directory))
    screen.lines(["", f"done in {perf_counter() - start:.1f} s"])
    return next((CODES[worst] for worst in _WORST_FIRST if worst in outcomes), 0)


def _outcomes(screen: Screen, directory: Path) -> Iterator[Outcome]:
    for number, side in enumerate(sides()):
        steps: tuple[Callable[[Screen, Side], Outcome], ...] = (
            _prove,
            _refute,
            _run,
            lambda screen, side: _build(screen, side, directory),
        )
        for place, step in enumerate(steps):
            screen.lines([""])
            screen.lines([f"[{STEPS * number + place + 1}/{2 * STEPS}] {side.machine}: {_title(side, place)}"], "bold")
            yield step(screen, side)


def _title(side: Side, place: int) -> str:
    return (
        "prove the shipped GEMM, C = A @ B^T in bf16, for every M, N and K that its launch accepts",
        f"refute a broken copy, a GEMM {side.fault}",
        "run the GEMM with a partial tile in every dimension, and compare with float64",
        f"emit {side.text} and compile it for {side.kernel.target}",
    )[place]


def _prove(screen: Screen, side: Side) -> Outcome:
    screen.lines([f"$ argus verify {side.named} --no-cache"])
    report = verify(side.kernel)
    screen.report(report)
    if isinstance(report.verdict, Refuted):
        return "wrong"
    return "good" if isinstance(report.verdict, Proved) else "open"


def _refute(screen: Screen, side: Side) -> Outcome:
    screen.lines([f"$ argus verify {side.twin} --no-cache"])
    report = verify(load(str(side.twin))[0].trace())
    screen.report(report)
    verdict = report.verdict
    return "good" if isinstance(verdict, Refuted) and verdict.counterexample.code == side.code else "wrong"


def _run(screen: Screen, side: Side) -> Outcome:
    sizes = ",".join(f"{name}={value}" for name, value in SIZES.items())
    screen.lines([f"$ argus run {side.named} --sizes {sizes}"])
    try:
        ran = run_kernel(side.kernel, SIZES)
    except ArgusError as problem:
        screen.diagnostic(problem.diagnostic)
        return "not done"
    screen.lines(lines(ran))
    return "good" if ran.comparison is not None and ran.comparison.right else "wrong"


def _build(screen: Screen, side: Side, directory: Path) -> Outcome:
    screen.lines([f"$ argus build {side.named} --target {side.kernel.target} -o {directory}"])
    try:
        artifact = build(side.kernel, directory=directory)
    except ArgusError as problem:
        screen.diagnostic(problem.diagnostic)
        return "not done"
    for warning in artifact.warnings:
        screen.diagnostic(warning)
    screen.lines(artifact_lines(artifact))
    return "good"
