"""The search for a run of the interpreter that violates an invariant, at small sizes first, within a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argus.core.proof.obligation import INVARIANT_PRIORITY
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import find_violations
from argus.interp.search.budget import EVENTS_PER_RUN, RunBudget
from argus.interp.search.diagnosis import Witness, diagnose
from argus.interp.search.schedule import directed


def search(
    prepared: Prepared, sizes: Sequence[Mapping[str, int]], codes: frozenset[str], budget: RunBudget
) -> Witness | None:
    """The first run that violates one of the invariants, or one soon after it that shows the cause.

    Most faults show under every schedule, so all sizes are tried under one schedule before the next. The smallest sizes
    may show a symptom alone, such as padding that is stored, where larger ones show unlike tags.
    """
    for schedule in directed(prepared.kernel):
        shown: list[Witness] = []
        left, cost = _SOON, 0
        for size in sizes:
            if not left or cost > budget.left or not budget.spend():  # later sizes are more work than this one was
                break
            before = prepared.runs.executed
            found = find_violations(prepared, size, schedule)
            cost = budget.charge(prepared.runs.executed - before)
            if shown or any(each.code in codes for each in found):
                shown += [Witness(size, schedule, each) for each in found]
                left = 0 if any(each.code in _CAUSES for each in found) else left - 1
        if shown:
            return min(shown, key=_priority)
    return None


_SOON = 5
"""The runs, from the first that shows a fault, among which its cause is looked for."""
_CAUSES = frozenset(INVARIANT_PRIORITY) - {"I23", "I25", "I3", "I4", "I39"}
"""Invariants of which a violation is no symptom of another."""


def _priority(witness: Witness) -> int:
    return INVARIANT_PRIORITY.index(witness.violation.code)


def search_events(prepared: Prepared, sizes: Sequence[Mapping[str, int]], budget: RunBudget) -> Witness | None:
    """The diagnosed cause of the first violation found, at the smallest size that shows one."""
    for schedule in directed(prepared.kernel):
        for place, size in enumerate(sizes):
            if not budget.spend():
                return None
            before = prepared.runs.executed
            found = find_violations(prepared, size, schedule)
            budget.charge(prepared.runs.executed - before, EVENTS_PER_RUN)
            if found:
                smaller = sizes[: min(place, _SMALLER)]
                causes = (diagnose(prepared, each, sizes, budget) for each in (*smaller, size))
                return next(filter(None, causes), None)
    return None


_SMALLER = 4
"""How many sizes below the first failing one to try under all schedules."""
