"""Checks the verdict on an edited kernel against runs of the interpreter and the values of C = A B^T."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import ml_dtypes
import numpy as np
from hypothesis import assume

from argus.core.ir import Kernel
from argus.core.verdict import Counterexample, Proved, Refuted, Report
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import run_prepared
from argus.interp.search.schedule import Schedule, directed
from argus.interp.search.search import sizes_in_order
from argus.interp.violation import UnsatisfiedPromiseError
from argus.verifier.refute_text import describe_schedule
from property_tests.programs import Mutant, within_bound

BF16 = np.dtype(ml_dtypes.bfloat16)
CHANCE = (Schedule("mixed", 1), Schedule("mixed", 2, "round_robin"), Schedule("mixed", 3, "highest"))
_TOGETHER = 6


def few_sizes(kernel: Kernel) -> Iterator[Mapping[str, int]]:
    """The smallest sizes, then some up to a few tiles."""
    every = list(sizes_in_order(kernel))
    yield from every[:3]
    yield from every[3 :: max(1, len(every) // 5)]


def schedules_at(kernel: Kernel, place: int) -> tuple[Schedule, ...]:
    """Directed schedules for the size number `place`, rotating if there are many, and random ones."""
    every = directed(kernel)
    apart = max(1, len(every) // _TOGETHER)
    return (*every[place % apart :: apart], *CHANCE)


def check_no_run_fails(mutant: Mutant) -> None:
    prepared, runs = Prepared(mutant.kernel), 0
    for place, sizes in enumerate(few_sizes(mutant.kernel)):
        for schedule in schedules_at(mutant.kernel, place):
            try:
                outcome = run_prepared(prepared, sizes, None, schedule, tags=True, values=False)
            except UnsatisfiedPromiseError:  # no integers keep the promises at these sizes
                break
            runs += 1
            found = [(v.code, v.message, str(v.stmt.span)) for v in outcome.violations]
            assert not found, f"proved, but fails at {sizes} under {schedule} after {mutant.edits}: {found}"
    assume(runs)  # small sizes meet the kernel's assumptions, and integers its promises; else no run says anything


def check_numbers(mutant: Mutant) -> None:
    prepared = Prepared(mutant.kernel)
    for sizes in list(few_sizes(mutant.kernel))[::3]:
        random = np.random.default_rng(1)
        arrays = {n: random.standard_normal((sizes[r], sizes["K"])).astype(BF16) for n, r in (("A", "M"), ("B", "N"))}
        outcome = run_prepared(prepared, sizes, arrays, Schedule("mixed", 9), tags=False, values=True)
        right = within_bound(arrays["A"], arrays["B"], outcome.arrays["C"])
        assert right, f"proved, but wrong numbers at {sizes} after {mutant.edits}"


def check_shown(kernel: Kernel, found: Counterexample) -> None:
    """Repeat the run of a counterexample."""
    if found.replayed == "recomputed":
        return
    schedule = next(s for s in directed(kernel) if found.schedule == describe_schedule(s))
    outcome = run_prepared(Prepared(kernel), dict(found.sizes), None, schedule, tags=True, values=False)
    places = {(v.code, str(v.stmt.span), v.thread) for v in outcome.violations}
    assert (found.code, found.place, found.thread) in places


def judge(mutant: Mutant, report: Report, *, product: bool) -> None:
    """Raises AssertionError if a run contradicts the verdict. product: the kernel's output is A B^T itself."""
    match report.verdict:
        case Proved():
            check_no_run_fails(mutant)
            if product and mutant.claims and not report.uncovered:
                check_numbers(mutant)
        case Refuted(counterexample=found):
            check_shown(mutant.kernel, found)
        case _:
            return
