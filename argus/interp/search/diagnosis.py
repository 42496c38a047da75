"""Diagnoses the cause of a synchronisation fault: from its symptoms under many schedules, and from a repair of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Await, Kernel
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import find_violations
from argus.interp.search.budget import RunBudget
from argus.interp.search.protocol_repairs import Repair, repairs
from argus.interp.search.schedule import Schedule, directed
from argus.interp.violation import Violation

Size = Mapping[str, int]
Found = tuple[Schedule, Violation]

_TIERS: tuple[frozenset[str], ...] = (
    frozenset(("I7", "I14", "I16")),
    frozenset(("I6",)),
    frozenset(("I10", "I12", "I13", "I11", "I5", "I36", "I31", "I37", "I19")),
    frozenset(("I8", "I9")),
    frozenset(("I15",)),
)
_SYMPTOMS = 3
"""Tiers of causes. Faults of byte counts, initialisation and multicasts are never consequences of other faults;
excess arrivals, deadlocks and early ends of blocks often are; the remaining invariants are about tags."""

_OF_PROTOCOLS = frozenset(("I5", "I6", "I8", "I9", "I10", "I36"))
"""The possible symptoms of a wrong arrival count or phase."""

_CHECKED = 4
_EVERY = 3
"""A repair must also hold at `_CHECKED` further sizes, under every `_EVERY`-th schedule."""


@frozen
class Witness:
    """A run with a violation. help: the repair, if one was found.

    raw: the violation that the run reported, if `violation` is its report at the cause, which `at_cause` makes.
    """

    sizes: Size
    schedule: Schedule
    violation: Violation
    help: str = ""
    raw: Violation | None = None
    at_cause: Callable[[Violation], Violation] | None = None


def diagnose(prepared: Prepared, size: Size, sizes: Sequence[Size], budget: RunBudget) -> Witness | None:
    """The cause of the violations at a size, under all directed schedules; None if there are none.

    sizes: all sizes of the search, least work first; a repair must also remove the fault at some later ones.
    """
    found: list[Found] = []
    for schedule in directed(prepared.kernel):
        if not budget.spend():
            break
        found += [(schedule, violation) for violation in _violations(prepared, size, schedule)]
    if not found:
        return None
    schedule, violation = _most_likely_cause(found)
    if violation.code in _OF_PROTOCOLS and not _is_evident(violation, found):
        after = sizes[sizes.index(size) + 1 :]
        repair = _repair(prepared.kernel, (size, *after[:_CHECKED]), budget)
        if repair is not None:
            at_cause = partial(_at_cause, repair)
            return Witness(size, schedule, at_cause(violation), repair.help, violation, at_cause)
    return Witness(size, schedule, violation)


def _violations(prepared: Prepared, size: Size, schedule: Schedule) -> tuple[Violation, ...]:
    return find_violations(prepared, size, schedule)


def _most_likely_cause(found: Sequence[Found]) -> Found:
    """The violation to report: an inconsistent multicast if there is one; else of the code that occurs under most
    schedules, causes before consequences, preferably between two agents.
    """
    shown = Counter(code for _, code in {(schedule, violation.code) for schedule, violation in found})
    first: dict[str, int] = {}
    for place, (_, violation) in enumerate(found):
        first.setdefault(violation.code, place)
    tiers = {code: _tier(code) for code in shown}
    chosen = [code for code in shown if code == "I16"] or [code for code in shown if tiers[code] == 0]
    chosen = chosen or [code for code in shown if tiers[code] < _SYMPTOMS]
    lowest = [code for code in shown if tiers[code] == min(tiers.values())]
    code = min(chosen or lowest, key=lambda code: (-shown[code], tiers[code], first[code]))
    of_code = [each for each in found if each[1].code == code]
    return min(of_code, key=lambda each: _vagueness(each[1]))


def _vagueness(violation: Violation) -> int:
    """A rank: a wait that returns too early is most informative, then a conflict of two threads."""
    if violation.code == "I6" and isinstance(violation.stmt, Await) and not violation.facts:
        return 0
    return 1 if violation.other_thread not in (None, violation.thread) else 2


def _tier(code: str) -> int:
    return next((place for place, codes in enumerate(_TIERS) if code in codes), len(_TIERS))


def _is_evident(violation: Violation, found: Sequence[Found]) -> bool:
    """Whether the violation is its own cause: only excess arrivals, under every schedule."""
    return violation.code == "I8" and all(other.code == "I8" for _, other in found)


def _repair(kernel: Kernel, sizes: Sequence[Size], budget: RunBudget) -> Repair | None:
    """The first repair without a violation at these sizes under the directed schedules."""
    for repair in repairs(kernel):
        if budget.left <= 0:
            return None
        if _holds(Prepared(repair.kernel), sizes, budget):
            return repair
    return None


def _holds(prepared: Prepared, sizes: Sequence[Size], budget: RunBudget) -> bool:
    """Whether runs at these sizes violate nothing; False also if the budget is too small to decide."""
    try:
        schedules = directed(prepared.kernel)
        tried = [(sizes[0], schedule) for schedule in schedules]
        tried += [(size, schedule) for size in sizes[1:] for schedule in schedules[::_EVERY]]
        return all(budget.spend() and not _violations(prepared, size, schedule) for size, schedule in tried)
    except (ArgusError, ZeroDivisionError):
        return False


def _at_cause(repair: Repair, violation: Violation) -> Violation:
    """The violation, reported at the statement that causes it, with the original as its consequence."""
    where = "".join(f", {name} = {value}" for name, value in violation.iteration)
    shows = (violation.stmt, f"{violation.code} shows here, by thread {violation.thread}{where}")
    return evolve(
        violation,
        code=repair.code,
        message=repair.fault,
        stmt=repair.stmt,
        other=None,
        iteration=(),
        facts=(("consequence", violation.message), *violation.facts),
        related=((repair.stmt, repair.help), shows, *violation.related),
    )
