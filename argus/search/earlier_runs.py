"""What earlier runs of a journal have found of the same problem: a new run begins with it.

A run records which events it has learnt from, so that it is resumed with the same.
"""

from __future__ import annotations

from attrs import evolve

from argus.policy.planner import Observation, Situation
from argus.search.events import Judged, Started
from argus.search.journal import Journal
from argus.search.loop import observation

MOST_RUNS = 8
"""Earlier runs that are asked, the latest ones."""


def earlier_runs(journal: Journal, started: Started) -> tuple[tuple[str, int], ...]:
    """Runs of the same problem with the same kind of times, oldest first: name and number of events so far."""
    same = [
        each.name
        for each in journal.runs()
        if (each.started.problem, each.started.target) == (started.problem, started.target)
        and each.started.reward == started.reward
        and each.judged
    ]
    return tuple((name, len(journal.events(name))) for name in same[-MOST_RUNS:])


def with_earlier_runs(journal: Journal, started: Started, before: Situation) -> Situation:
    """The situation with what those runs observed of its designs, and the fastest of these as the first choice.

    Kernels that a model wrote are not among them: they are no designs of another run.
    """
    options = {each.name: each for each in before.options}
    known: dict[str, Observation] = {}
    for name, count in started.earlier:
        for event in journal.events(name)[:count]:
            if isinstance(event, Judged) and event.judgement.name in options and event.judgement.outcome != "lost":
                choice = options[event.judgement.name]
                known[choice.name] = observation(choice, event.judgement)
    if not known:
        return before
    earlier = tuple(known.values())
    passed = [each for each in earlier if each.microseconds is not None]
    best = min(passed, key=lambda each: each.microseconds or 0.0, default=None)
    return evolve(before, earlier=earlier, first=before.first if best is None else best.choice.name)
