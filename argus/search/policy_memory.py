"""Lessons of earlier runs, read from the journal: what a model has learnt on one problem is shown on the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from argus.core.diagnostic import ArgusError
from argus.policy.llm.memory import MOST_LESSONS
from argus.policy.llm.record import from_data
from argus.policy.llm.reply import Kernel, Reply
from argus.policy.llm.texts import printable_line
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Event, Judged, Started
from argus.search.journal import Journal
from argus.search.problems.problem import display_name

_MOST = 12
_LINE = 320
_RUNS = 40
"""Number of the latest runs that are read."""


def earlier_lessons(journal: Journal, run: str, problem: str, target: str) -> tuple[str, ...]:
    """Lessons of other runs for the target, those of the same kind of problem first, then the latest.

    run: the present one. problem: its name. A run that cannot be read has none. Raises ArgusError (E904).
    """
    others = [each for each in journal.runs() if each.name != run and each.started.target == target]
    latest, kind = others[: -_RUNS - 1 : -1], _kind(problem)
    ordered = sorted(latest, key=lambda each: _kind(each.started.problem) != kind)
    found = (line for each in ordered for line in _lessons_of_run(journal, each.name))
    return tuple(dict.fromkeys(found))[:_MOST]


def _lessons_of_run(journal: Journal, name: str) -> tuple[str, ...]:
    try:
        return lessons_of(journal.events(name))
    except ArgusError:  # written by another version: an old run does not stop a new one
        return ()


def lessons_of(events: Sequence[Event]) -> tuple[str, ...]:
    """The lessons at the end of a run, each after what the run reached, and the repairs that stood."""
    started = next((each for each in events if isinstance(each, Started)), None)
    if started is None:
        return ()
    judged = {each.judgement.name: each.judgement for each in events if isinstance(each, Judged)}
    times = [each.microseconds for each in judged.values() if each.microseconds is not None]
    reached = f"{started.bound / min(times):.0%} of light" if times else "nothing passed"
    lessons: list[str] = []
    repairs: list[str] = []
    for reply in _replies(events):
        lessons = list(reply.lessons) or lessons if reply.task == "plan" else [*lessons, *reply.lessons][-MOST_LESSONS:]
        for each in reply.proposals:
            match each.target:
                case Kernel(repairs=str(refused)) as kernel if refused in judged and _passed(judged.get(kernel.name)):
                    repairs.append(f"{judged[refused].why}; mended by: {each.reason}")
                case _:
                    pass
    on = display_name(started.problem)
    return tuple(printable_line(f"{reached} on {on}: {each}", _LINE) for each in dict.fromkeys((*repairs, *lessons)))


def _passed(found: Judgement | None) -> bool:
    return found is not None and found.microseconds is not None


def _replies(events: Iterable[Event]) -> Iterable[Reply]:
    for event in events:
        if isinstance(event, Asked):
            try:
                found = from_data(event.reply)
            except ArgusError:  # of another version: its lessons are not worth an error
                continue
            if isinstance(found, Reply):
                yield found


def _kind(problem: str) -> str:
    """The family of a problem, or the name of its file."""
    family, _, _ = problem.partition(":")
    return display_name(problem).partition(" ")[0] if family == "file" else family
