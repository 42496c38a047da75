"""Refutes claimed formulas that hold over the reals alone: by runs in which numbers are rounded to their types."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.core.ir import Assert, Equals, Kernel
from argus.core.proof.values.held.deciding import deciding
from argus.core.query import Budget
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import find_violations
from argus.interp.search.budget import RunBudget
from argus.interp.search.diagnosis import Witness
from argus.interp.search.provenance import trace_provenance
from argus.interp.search.runs import Runs
from argus.interp.search.schedule import rounding
from argus.interp.search.search import sizes_in_order
from argus.interp.search.shrink import shrink
from argus.interp.violation import Violation
from argus.verifier.formula_diagnosis import Diagnosis
from argus.verifier.refute import Refutation, RunEvidence, Suspect, refutation_of_run, refute

MOST_SIZES = 3
"""The sizes at which numbers are rounded, with each draw of them."""
_MOST_RUNS = 32
EVIDENCE = RunEvidence(
    differs=Diagnosis(
        (),
        "rounding decides a test, a floor or an integer: decide it by numbers that are not rounded, or say in the "
        "claim what is rounded, as `round_bf16` does",
    )
)


def refute_or_round(
    kernel: Kernel, suspects: Sequence[Suspect], budget: Budget, runs: Runs | None = None
) -> Refutation | None:
    """As `refute`; where no run over the reals shows a fault, runs in which numbers are rounded are tried."""
    known = runs or Runs()
    return refute(kernel, suspects, budget, known) or _refute_by_rounding(kernel, suspects, budget, known)


def budget_of_rounding(budget: Budget) -> RunBudget:
    """The runs in which numbers are rounded: few, whatever is left of others."""
    return RunBudget.of(evolve(budget, runs=min(budget.runs, _MOST_RUNS)))


def is_of_formula(violation: Violation) -> bool:
    """Whether what is stored differs from a claimed formula: rounding explains no other fault."""
    return isinstance(violation.stmt, Assert) and isinstance(violation.stmt.claim, Equals)


def asks_for_rounding(suspects: Sequence[Suspect]) -> bool:
    """Whether a claimed formula is neither proved nor shown to be wrong."""
    claims = (each.obligation.stmt for each in suspects if each.sizes is None)
    return any(isinstance(stmt, Assert) and isinstance(stmt.claim, Equals) for stmt in claims)


def _refute_by_rounding(kernel: Kernel, suspects: Sequence[Suspect], budget: Budget, runs: Runs) -> Refutation | None:
    if not asks_for_rounding(suspects) or not deciding(kernel):
        return None
    left = budget_of_rounding(budget)
    try:
        prepared = Prepared(kernel, runs)
        witness = _search(prepared, left)
    except ArgusError as problem:
        if problem.diagnostic.code != "E501":
            raise
        return None
    except (ZeroDivisionError, RecursionError):
        return None
    if witness is None:
        return None
    shrunk, smallest = shrink(prepared, witness, left)
    came = trace_provenance(prepared, shrunk.sizes, shrunk.schedule, shrunk.violation)
    obligations = [suspect.obligation for suspect in suspects]
    return refutation_of_run(kernel, shrunk, smallest, obligations, evolve(EVIDENCE, came=came))


def _search(prepared: Prepared, budget: RunBudget) -> Witness | None:
    for schedule in rounding(prepared.kernel):
        for size in islice(sizes_in_order(prepared.kernel, []), MOST_SIZES):
            if not budget.spend():
                return None
            found = next(filter(is_of_formula, find_violations(prepared, size, schedule)), None)
            if found is not None:
                return Witness(size, schedule, found)
    return None
