"""The cause of a fault in a kernel whose threads meet at events: what many schedules show, and what takes it away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError
from argus.core.ir import Await, Kernel
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import violated
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
"""Bytes, initialisation and what clusters agree on are never a consequence; arrivals in excess, hangs and early ends
often are; what is left are tags."""

_OF_PROTOCOLS = frozenset(("I5", "I6", "I8", "I9", "I10", "I36"))
"""What a wrong count or phase may show as."""

_CHECKED = 4
_EVERY = 3
"""Of the sizes after the one that fails, so many are tried under every third schedule."""


@frozen
class Witness:
    """A run that shows a violation. help: what would do, where the fault has told.

    raw: what the run itself reported, if the violation tells it at its cause, as `retold` does.
    """

    sizes: Size
    schedule: Schedule
    violation: Violation
    help: str = ""
    raw: Violation | None = None
    retold: Callable[[Violation], Violation] | None = None


def diagnose(prepared: Prepared, size: Size, sizes: Sequence[Size], budget: RunBudget) -> Witness | None:
    """The cause of what goes wrong at a size, under all directed schedules; None if nothing does.

    sizes: all that are tried, least work first; a change must take the fault away at some after this one too.
    """
    found: list[Found] = []
    for schedule in directed(prepared.kernel):
        if not budget.spend():
            break
        found += [(schedule, violation) for violation in _violations(prepared, size, schedule)]
    if not found:
        return None
    schedule, violation = _clearest(found)
    if violation.code in _OF_PROTOCOLS and not _plain(violation, found):
        after = sizes[sizes.index(size) + 1 :]
        repair = _repair(prepared.kernel, (size, *after[:_CHECKED]), budget)
        if repair is not None:
            retold = partial(_retold, repair)
            return Witness(size, schedule, retold(violation), repair.help, violation, retold)
    return Witness(size, schedule, violation)


def _violations(prepared: Prepared, size: Size, schedule: Schedule) -> tuple[Violation, ...]:
    return violated(prepared, size, schedule)


def _clearest(found: Sequence[Found]) -> Found:
    """What blocks of a cluster do not agree on, or one of the code that shows under most schedules, causes before what
    they lead to, between two agents if any.
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
    return min(of_code, key=lambda each: _vague(each[1]))


def _vague(violation: Violation) -> int:
    """A wait that ends too soon tells most, then what two threads do to each other."""
    if violation.code == "I6" and isinstance(violation.stmt, Await) and not violation.facts:
        return 0
    return 1 if violation.other_thread not in (None, violation.thread) else 2


def _tier(code: str) -> int:
    return next((place for place, codes in enumerate(_TIERS) if code in codes), len(_TIERS))


def _plain(violation: Violation, found: Sequence[Found]) -> bool:
    """Whether the fault has told its cause: nothing but too many arrivals, whatever the schedule."""
    return violation.code == "I8" and all(other.code == "I8" for _, other in found)


def _repair(kernel: Kernel, sizes: Sequence[Size], budget: RunBudget) -> Repair | None:
    """The first change that leaves no fault at these sizes under any directed schedule."""
    for repair in repairs(kernel):
        if budget.left <= 0:
            return None
        if _holds(Prepared(repair.kernel), sizes, budget):
            return repair
    return None


def _holds(prepared: Prepared, sizes: Sequence[Size], budget: RunBudget) -> bool:
    """Whether runs at these sizes violate nothing; False too where there are not enough runs left to say."""
    try:
        schedules = directed(prepared.kernel)
        tried = [(sizes[0], schedule) for schedule in schedules]
        tried += [(size, schedule) for size in sizes[1:] for schedule in schedules[::_EVERY]]
        return all(budget.spend() and not _violations(prepared, size, schedule) for size, schedule in tried)
    except (ArgusError, ZeroDivisionError):
        return False


def _retold(repair: Repair, violation: Violation) -> Violation:
    """What a fault leads to, told at its cause."""
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
