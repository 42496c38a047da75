"""Counterexamples in words: the schedule, the thread, and the path of an element."""

from __future__ import annotations

from collections.abc import Iterable

from argus.core.diagnostic import Label
from argus.core.verdict import Counterexample, HopKind
from argus.interp.search.schedule import Schedule
from argus.interp.violation import Violation


def hop_labels(found: Counterexample) -> Iterable[Label]:
    """Labels for the statements that moved the elements, each statement once, at its last execution."""
    last = {hop.span: hop for hop in found.chain}
    for span, hop in last.items():
        taken = " and ".join(map(str, dict.fromkeys(hop.sources)))
        done = _DONE[hop.kind].format(taken) if taken else "is set to a constant"
        yield Label(span, f"{hop.target} {done}, thread {hop.thread}{iteration_text(hop.iteration)}")


_DONE: dict[HopKind, str] = {
    "copy": "comes from {}",
    "product": "sums products of {}",
    "computation": "is computed from {}",
}
_STYLES = {"late": "as late as possible", "early": "at once", "mixed": "at random moments"}
_ACTORS = {
    "producer": "the first role",
    "first": "the first agent of the second",
    "rest": "all others",
    "engine": "asynchronous operations",
}
_ORDERS = {
    "lowest": "lowest wave first",
    "highest": "highest wave first",
    "round_robin": "waves in turn",
    "random": "waves at random",
}


def describe_schedule(schedule: Schedule) -> str:
    """A schedule in words; distinct schedules of one kernel have distinct texts."""
    rounds = ", numbers rounded to their types" if schedule.rounds else ""
    if schedule.priority:
        return f"each moves if it can, in this order: {', '.join(map(_ACTORS.__getitem__, schedule.priority))}{rounds}"
    chance = "mixed" in (schedule.style, schedule.order) or schedule.order == "random"
    seed = f", seed {schedule.seed}" if chance else ""
    return f"asynchronous operations {_STYLES[schedule.style]}, {_ORDERS[schedule.order]}{seed}{rounds}"


def thread_text(thread: int, unit: int) -> str:
    return f"thread {thread} (wave {thread // unit}, lane {thread % unit})"


def iteration_text(iteration: tuple[tuple[str, int], ...]) -> str:
    return "".join(f", {name} = {value}" for name, value in iteration)


def facts(found: Counterexample, violation: Violation) -> Iterable[tuple[str, str]]:
    yield "launch", ", ".join(f"{name}={value}" for name, value in found.sizes)
    if found.block:
        yield "block", f"({', '.join(map(str, found.block))})"
    if found.element is not None:
        at = ", ".join(map(str, found.element))
        value = "" if violation.value is None else f", register element {violation.value} of the thread"
        yield "element", f"`{found.buffer}`[{at}]{value}"
    yield from violation.facts
    yield "replayed", f"yes, by the interpreter ({found.schedule})"
