"""Times of all points of a space on the GPU, a few at a time, so that one that hangs costs little.

Every few have one configuration in common: what the card's heat does to all of them shows in its times.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from argus.core.diagnostic import ArgusError
from argus.runtime.processes.watchdog import Watched
from argus.search.tuning.measure import BRIEF, Job, Medians, Shape, measure_brief

_FATAL = {"E409", "E410"}
_ROUNDS = 3


@frozen
class Time:
    """Microseconds of a point for a shape, the median of brief bursts; None where it has none, and why.

    beside: microseconds of the configuration that all batches have in common, in the same rounds.
    """

    shape: Shape
    name: str
    microseconds: float | None
    why: str = ""
    beside: float | None = None


Paths = Mapping[str, str]


@frozen
class Plan:
    """names: in the order in which they are timed, so many at once. common: one of them, timed with all others.

    until: of `time.monotonic`, when no more is begun.
    """

    paths: Paths
    names: Sequence[str]
    common: str
    at_once: int
    until: float


def time_points(child: Watched, shape: Shape, plan: Plan) -> Iterator[list[Time]]:
    """The times of one batch after the other. Raises ArgusError: E406, E407, E408."""
    others = [name for name in plan.names if name != plan.common]
    for first in range(0, len(others), plan.at_once):
        if time.monotonic() >= plan.until:
            return
        yield list(_of_batch(child, shape, plan, others[first : first + plan.at_once]))


def _of_batch(child: Watched, shape: Shape, plan: Plan, batch: Sequence[str]) -> Iterator[Time]:
    """What hangs or faults is told, and the rest of its batch begun anew without it."""
    left = {name: plan.paths[name] for name in (plan.common, *batch)}
    while left:
        try:
            found: Medians = child.call(measure_brief, Job(shape, left, _ROUNDS))
        except ArgusError as problem:
            guilty = child.heard
            if problem.diagnostic.code not in _FATAL:
                raise
            if guilty not in left:  # among those that were right, in the rounds
                yield from _one_by_one(child, shape, left, str(problem))
                return
            yield Time(shape, guilty, None, str(problem))
            del left[guilty]
            continue
        yield from _times(shape, plan.common, left, found)
        return


def _one_by_one(child: Watched, shape: Shape, left: Paths, why: str) -> Iterator[Time]:
    """Each alone: which of them hangs is not told otherwise."""
    for name, path in left.items():
        try:
            found: Medians = child.call(measure_brief, Job(shape, {name: path}, _ROUNDS))
        except ArgusError as problem:
            if problem.diagnostic.code not in _FATAL:
                raise
            yield Time(shape, name, None, f"{problem}; beside others: {why}")
        else:
            yield from _times(shape, "", {name: path}, found)


def _times(shape: Shape, common: str, names: Paths, found: Medians) -> Iterator[Time]:
    medians = found.medians[BRIEF.name]
    for name in names:
        if name in medians:
            yield Time(shape, name, medians[name], "", medians.get(common))
        else:
            yield Time(
                shape, name, None, "wrong numbers" if name in found.wrong else found.left_out.get(name, "no time")
            )
