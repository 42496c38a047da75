"""The main job from end to end: prove a kernel, refute a broken one, run it, compile it."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt

from argus.api import build, interpret
from argus.core.diagnostic import ArgusError
from argus.core.verdict import Proved, Refuted
from argus.kernels.gemm import gemm
from argus.loader import load
from argus.screen import Screen
from argus.summary import artifact_lines
from argus.verify import verify

BROKEN = Path(__file__).with_name("broken.py")
SHAPE = (150, 136, 72)
"""M, N and K of the run: none is a multiple of the tile (128, 128, 32)."""

BF16_ROUNDING = 2.0**-8
F32_ROUNDING = 2.0**-23
Matrix = npt.NDArray[np.float64]


def run(screen: Screen, directory: Path) -> int:
    """Show the four steps; the exit code: 0, 1 if one came out wrong, 3 if one could not be done.

    directory: where the artefacts go. The GEMM is that of `argus.kernels.gemm`.
    """
    start = perf_counter()
    wrong = not _prove(screen) + (not _refute(screen)) + (not _interpret(screen))
    built = _build(screen, directory)
    screen.lines(["", f"done in {perf_counter() - start:.1f} s"])
    if wrong:
        return 1
    return 0 if built else 3


def _title(screen: Screen, number: int, text: str, *command: str) -> None:
    screen.lines(["", f"[{number}/4] {text}"], "bold")
    screen.lines(command)


def _prove(screen: Screen) -> bool:
    _title(
        screen,
        1,
        "prove the shipped GEMM, C = A @ B^T in bf16 for MI300X, for every M, N and K",
        "$ argus verify argus.kernels.gemm --no-cache",
    )
    report = verify(gemm)
    screen.report(report)
    return isinstance(report.verdict, Proved)


def _refute(screen: Screen) -> bool:
    _title(
        screen,
        2,
        "refute a broken twin: the same loop without the barrier that ends a step",
        f"$ argus verify {BROKEN} --no-cache",
    )
    report = verify(load(str(BROKEN))[0].trace())
    screen.report(report)
    return isinstance(report.verdict, Refuted) and report.verdict.counterexample.code == "I5"


def _interpret(screen: Screen) -> bool:
    rows, columns, depth = SHAPE
    _title(
        screen, 3, f"run the GEMM in the interpreter, M = {rows}, N = {columns}, K = {depth}, and compare with float64"
    )
    start = perf_counter()
    random = np.random.default_rng(0)
    kind = gemm.trace("cdna3").parameters[0].dtype.numpy
    a = random.standard_normal((rows, depth)).astype(kind)
    b = random.standard_normal((columns, depth)).astype(kind)
    c = interpret(gemm, a, b, np.zeros((rows, columns), kind))["C"].astype(np.float64)
    error, bound = np.abs(c - a.astype(np.float64) @ b.astype(np.float64).T), _bound(a, b)
    right = bool((error <= bound).all())
    screen.lines(_compared(error, bound))
    screen.lines([f"  {perf_counter() - start:.2f} s, with asynchronous copies as late as the waits allow"])
    return right


def _compared(error: Matrix, bound: Matrix) -> tuple[str, ...]:
    at = int(error.argmax())
    close = int((error - bound).argmax())
    outside = int((error > bound).sum())
    return (
        f"  largest error {error.flat[at]:.3g}, where rounding to bf16 and fp32 may cause {bound.flat[at]:.3g}",
        f"  closest to its bound: {error.flat[close]:.3g} of {bound.flat[close]:.3g}",
        f"  outside their bounds: {outside} of {error.size:,} elements",
    )


def _bound(a: npt.ArrayLike, b: npt.ArrayLike) -> Matrix:
    """u |A B^T| + (1 + u) e: e bounds fp32 sums of K exact products in any order, u is the rounding to bf16."""
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    sums = left.shape[1] * F32_ROUNDING * (np.abs(left) @ np.abs(right).T)
    return BF16_ROUNDING * np.abs(left @ right.T) + (1 + BF16_ROUNDING) * sums


def _build(screen: Screen, directory: Path) -> bool:
    _title(
        screen,
        4,
        "emit HIP and compile it for gfx942",
        f"$ argus build argus.kernels.gemm --target gfx942 -o {directory}",
    )
    try:
        artifact = build(gemm, "gfx942", directory)
    except ArgusError as problem:
        screen.diagnostic(problem.diagnostic)
        return False
    screen.lines(artifact_lines(artifact))
    return True
