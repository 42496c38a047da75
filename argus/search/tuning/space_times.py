"""Times all points of a search space on the GPU in small batches, which limits the cost of a hang.

All batches share one configuration as a control, whose times show drift such as thermal throttling.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from argus.core.diagnostic import ArgusError
from argus.runtime.processes.watchdog import WatchedProcess
from argus.search.tuning.measure import BRIEF, Job, Medians, Shape, measure_brief

_FATAL = {"E409", "E410"}
_ROUNDS = 3


@frozen
class Time:
    """Median time of a point in short bursts, in microseconds; None if it failed. why: the reason.

    beside: time of the control configuration in the same rounds, in microseconds.
    """

    shape: Shape
    name: str
    microseconds: float | None
    why: str = ""
    beside: float | None = None


Paths = Mapping[str, str]


@frozen
class Plan:
    """names: in measuring order. at_once: batch size. common: the control, timed in every batch.

    until: deadline by `time.monotonic` for starting a batch.
    """

    paths: Paths
    names: Sequence[str]
    common: str
    at_once: int
    until: float


def time_points(child: WatchedProcess, shape: Shape, plan: Plan) -> Iterator[list[Time]]:
    """Yield the times batch by batch. Raises ArgusError: E406, E407, E408."""
    others = [name for name in plan.names if name != plan.common]
    for first in range(0, len(others), plan.at_once):
        if time.monotonic() >= plan.until:
            return
        yield list(_of_batch(child, shape, plan, others[first : first + plan.at_once]))


def _of_batch(child: WatchedProcess, shape: Shape, plan: Plan, batch: Sequence[str]) -> Iterator[Time]:
    """Times of one batch. A point that hangs or crashes is reported, and the rest of the batch is measured again."""
    left = {name: plan.paths[name] for name in (plan.common, *batch)}
    while left:
        try:
            found: Medians = child.call(measure_brief, Job(shape, left, _ROUNDS))
        except ArgusError as problem:
            guilty = child.last_note
            if problem.diagnostic.code not in _FATAL:
                raise
            if guilty not in left:  # it happened in the interleaved rounds, so that the culprit is unknown
                yield from _one_by_one(child, shape, left, str(problem))
                return
            yield Time(shape, guilty, None, str(problem))
            del left[guilty]
            continue
        yield from _times(shape, plan.common, left, found)
        return


def _one_by_one(child: WatchedProcess, shape: Shape, left: Paths, why: str) -> Iterator[Time]:
    """Time each point alone to find the one that hangs."""
    for name, path in left.items():
        try:
            found: Medians = child.call(measure_brief, Job(shape, {name: path}, _ROUNDS))
        except ArgusError as problem:
            if problem.diagnostic.code not in _FATAL:
                raise
            yield Time(shape, name, None, f"{problem}; in the batch: {why}")
        else:
            yield from _times(shape, "", {name: path}, found)


def _times(shape: Shape, common: str, names: Paths, found: Medians) -> Iterator[Time]:
    medians = found.medians[BRIEF.name]
    for name in names:
        if name in medians:
            yield Time(shape, name, medians[name], "", medians.get(common))
        else:
            yield Time(
                shape, name, None, "wrong results" if name in found.wrong else found.left_out.get(name, "no time")
            )
