"""A random small program of any family, and the comparison of its verdict with runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.ir import Kernel
from argus.core.verdict import Counterexample, Proved, Refuted, Report
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import run_prepared
from argus.interp.search.schedule import Schedule, directed
from argus.interp.search.search import sizes_in_order
from argus.testing.mutants import spread_sizes
from argus.verifier.refute_text import describe_schedule
from property_tests.small import moving, ringing, summing
from property_tests.small.choosing import Choose

Array = npt.NDArray[Any]


_REPORTED_AT_CAUSE = frozenset(("I5", "I6", "I7", "I8", "I9", "I10", "I36"))
"""A run may report a violation of these at another statement, its cause: then it suffices that the run fails."""


class Program(Protocol):
    """A configuration of a family: hashable, its kernel, and the outputs that its claims determine, in float64."""

    def kernel(self) -> Kernel: ...

    def expected(self, arrays: Mapping[str, Array], /) -> dict[str, Array]: ...


FAMILIES: tuple[Callable[[Choose], Program], ...] = (
    *(moving.draw,) * 10,
    *(summing.draw,) * 2,
    ringing.draw,
)
"""Families, weighted towards those that are cheap to run."""


_FEW = 3


def draw(choose: Choose) -> Program:
    return choose(FAMILIES)(choose)


@frozen
class Depth:
    """How much a proved program is run: number of sizes, random schedules per size.

    every: run all directed schedules at each size; otherwise three, rotating over the sizes.
    """

    sizes: int = 4
    random: int = 1
    every: bool = False


def disagreement(program: Program, kernel: Kernel, report: Report, depth: Depth) -> str:
    """How a run contradicts the verdict; empty if none does."""
    match report.verdict:
        case Proved():
            return _of_tags(kernel, depth) or _of_numbers(program, kernel, depth)
        case Refuted(counterexample=found):
            return _of_replay(kernel, found)
        case _:
            return ""


def _of_tags(kernel: Kernel, depth: Depth) -> str:
    prepared, schedules = Prepared(kernel), directed(kernel)
    sizes = spread_sizes(list(sizes_in_order(kernel)), depth.sizes)
    for place, size in enumerate(sizes):
        drawn = [Schedule("mixed", seed) for seed in range(depth.random)]
        shown: Sequence[Schedule] = schedules if depth.every else schedules[place :: max(1, len(schedules) // _FEW)]
        for schedule in (*shown, *drawn):
            outcome = run_prepared(prepared, size, None, schedule, tags=True, values=False)
            if outcome.violations:
                first = outcome.violations[0]
                return f"proved, but {first.code} {first.message} at {size} under {schedule}"
    return ""


def _of_numbers(program: Program, kernel: Kernel, depth: Depth) -> str:
    prepared = Prepared(kernel)
    for size in spread_sizes(list(sizes_in_order(kernel)), depth.sizes)[1::2]:
        outcome = run_prepared(prepared, size, None, Schedule("mixed", 5), tags=False, values=True)
        for name, wanted in program.expected(outcome.arrays).items():
            error = np.abs(outcome.arrays[name].astype(np.float64) - wanted)
            if not (error <= 2.0**-8 * np.abs(wanted) + 1e-3).all():
                return f"proved, but the numbers of `{name}` are wrong at {size}"
    return ""


def _of_replay(kernel: Kernel, found: Counterexample) -> str:
    if found.replayed == "recomputed":
        return ""
    for schedule in directed(kernel):
        if describe_schedule(schedule) == found.schedule:
            outcome = run_prepared(Prepared(kernel), dict(found.sizes), None, schedule, tags=True, values=False)
            shown = {(each.code, str(each.stmt.span), each.thread) for each in outcome.violations}
            if (found.code, found.place, found.thread) in shown or (shown and found.code in _REPORTED_AT_CAUSE):
                return ""
    return f"refuted by {found.code} at {found.place}, and no run of {found.schedule} shows it"
