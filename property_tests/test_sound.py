"""Claim: what is proved does not fail, and every failure that is reported is one.

Kernels are edited at random, so that most are wrong. If the verifier proves one, the interpreter must find nothing
at any of a list of sizes, under directed and random schedules; if the edits left the claims alone, the numbers must
be those of C = A B^T as well. A refutation has been replayed where it was made; its replay is repeated here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import ml_dtypes
import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from argus.core.check import check
from argus.core.ir import Kernel
from argus.core.verdict import Counterexample, Proved, Refuted, Report
from argus.interp.prepared import Prepared
from argus.interp.run import run_prepared
from argus.interp.schedule import Schedule, directed
from argus.interp.search import sizes_in_order
from argus.refute import told
from argus.verify import verify
from property_tests.edits import mutate
from property_tests.programs import KERNELS, PRODUCTS, Mutant, within_bound

BF16 = np.dtype(ml_dtypes.bfloat16)
CHANCE = (Schedule("mixed", 1), Schedule("mixed", 2, "round_robin"), Schedule("mixed", 3, "highest"))


def few_sizes(kernel: Kernel) -> Iterator[Mapping[str, int]]:
    """The smallest sizes, then some up to a few tiles."""
    every = list(sizes_in_order(kernel))
    yield from every[:3]
    yield from every[3 :: max(1, len(every) // 5)]


def check_no_run_fails(mutant: Mutant) -> None:
    prepared = Prepared(mutant.kernel)
    for sizes in few_sizes(mutant.kernel):
        for schedule in (*directed(mutant.kernel), *CHANCE):
            outcome = run_prepared(prepared, sizes, None, schedule, tags=True, values=False)
            found = [(v.code, v.message, str(v.stmt.span)) for v in outcome.violations]
            assert not found, f"proved, but fails at {sizes} under {schedule} after {mutant.edits}: {found}"


def check_numbers(mutant: Mutant) -> None:
    prepared = Prepared(mutant.kernel)
    for sizes in list(few_sizes(mutant.kernel))[::3]:
        random = np.random.default_rng(1)
        arrays = {n: random.standard_normal((sizes[r], sizes["K"])).astype(BF16) for n, r in (("A", "M"), ("B", "N"))}
        outcome = run_prepared(prepared, sizes, arrays, Schedule("mixed", 9), tags=False, values=True)
        right = within_bound(arrays["A"], arrays["B"], outcome.arrays["C"])
        assert right, f"proved, but wrong numbers at {sizes} after {mutant.edits}"


def check_shown(kernel: Kernel, found: Counterexample) -> None:
    """A counterexample of a run, run again."""
    if found.replayed == "recomputed":
        return
    schedule = next(s for s in directed(kernel) if found.schedule == told(s))
    outcome = run_prepared(Prepared(kernel), dict(found.sizes), None, schedule, tags=True, values=False)
    places = {(v.code, str(v.stmt.span), v.thread) for v in outcome.violations}
    assert (found.code, found.place, found.thread) in places


def judge(name: str, mutant: Mutant, report: Report) -> None:
    match report.verdict:
        case Proved():
            check_no_run_fails(mutant)
            if name in PRODUCTS and mutant.claims and not report.uncovered:
                check_numbers(mutant)
        case Refuted(counterexample=found):
            check_shown(mutant.kernel, found)
        case _:
            return


@settings(max_examples=30)
@given(name=st.sampled_from(sorted(KERNELS)), seed=st.integers(0, 1 << 32), edits=st.integers(1, 3))
def test_verdicts_on_edited_kernels(name: str, seed: int, edits: int) -> None:
    mutant = mutate(KERNELS[name], Random(seed), edits)  # noqa: S311 reason: an example, not a secret
    assume(mutant is not None)
    assert mutant is not None
    assume(not check(mutant.kernel))
    judge(name, mutant, verify(mutant.kernel, solver="z3" if seed % 2 else "cvc5"))
