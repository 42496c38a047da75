"""Enumerates the executions that precede a step in program order, nearest first, across loop iterations."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from argus.core import algebra
from argus.core.index import Cond
from argus.core.ir import Alloc, Copy, Fold, Map, Mma, Reset
from argus.core.proof.dataflow.access import asserted_views
from argus.core.proof.dataflow.timeline import Segment, Shift, Step, Timeline
from argus.core.walk import substitute

HORIZON = 8
"""Number of earlier iterations of a loop that are modelled."""


@frozen(eq=False)
class Execution:
    """An execution of `step` that precedes the step under consideration. shift: substitution for its iteration.

    exists: the condition, in the symbols of the later step, that it took place.
    distance: iterations before the later step in the same loop, 0 for the same iteration; None in another segment.
    from_last: iterations before the last one of its own, earlier loop; 0 in straight-line segments.
    """

    step: Step
    shift: Shift
    exists: Cond
    distance: int | None
    from_last: int = 0


@frozen(eq=False)
class Horizon:
    """The limit of what is modelled: if `reached` holds, the segment has older executions, which are unknown."""

    reached: Cond
    segment: Segment


class History:
    """The executions that precede each step of a timeline; those of whole segments are computed once."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._earlier_iterations: dict[Segment, tuple[Execution | Horizon, ...]] = {}
        self._whole_segments: dict[Segment, tuple[Execution | Horizon, ...]] = {}

    def before(self, step: Step) -> Iterator[Execution | Horizon]:
        """Every earlier execution that accesses storage, nearest first, and the horizon of each loop."""
        segment = self._timeline.segments[step.segment]
        for earlier in reversed(segment.steps):
            if earlier.position < step.position and _accesses_storage(earlier):
                yield Execution(earlier, {}, earlier.guard, 0)
        if segment.loop is not None:
            if segment not in self._earlier_iterations:
                self._earlier_iterations[segment] = tuple(_iterations_before(segment))
            yield from self._earlier_iterations[segment]
        for other in reversed(self._timeline.segments[: step.segment]):
            if other not in self._whole_segments:
                self._whole_segments[other] = tuple(_segment_executions(other))
            yield from self._whole_segments[other]


def _accesses_storage(step: Step) -> bool:
    return isinstance(step.stmt, Copy | Map | Fold | Mma | Alloc | Reset) or any(asserted_views(step.stmt))


def _iterations_before(segment: Segment) -> Iterator[Execution | Horizon]:
    loop = segment.loop
    assert loop is not None
    for distance in range(1, HORIZON + 1):
        shift, loop_ran = loop.back(distance), loop.has_earlier(distance)
        for earlier in reversed(segment.steps):
            if _accesses_storage(earlier):
                exists = algebra.all_of((loop_ran, substitute(earlier.guard, shift)))
                yield Execution(earlier, shift, exists, distance)
    yield Horizon(loop.has_earlier(HORIZON + 1), segment)


def _segment_executions(segment: Segment) -> Iterator[Execution | Horizon]:
    if segment.loop is None:
        yield from (
            Execution(earlier, {}, earlier.guard, None)
            for earlier in reversed(segment.steps)
            if _accesses_storage(earlier)
        )
        return
    loop = segment.loop
    for from_last in range(HORIZON):
        shift = loop.last(from_last)
        ran = algebra.lt(from_last, loop.trips)
        for earlier in reversed(segment.steps):
            if _accesses_storage(earlier):
                exists = algebra.all_of((ran, substitute(earlier.guard, shift)))
                yield Execution(earlier, shift, exists, None, from_last)
    yield Horizon(algebra.lt(HORIZON, loop.trips), segment)


def steps_between(timeline: Timeline, moment: Execution, step: Step) -> Iterator[tuple[Step, Shift]]:
    """The steps that execute on every path between an earlier execution and `step`, where their guards hold, in order.

    Loops in between contribute no steps, because they may run zero times.
    """
    start, end = timeline.segments[moment.step.segment], timeline.segments[step.segment]
    if start is end and moment.distance == 0:
        yield from ((s, {}) for s in start.steps if moment.step.position < s.position < step.position)
        return
    yield from ((s, moment.shift) for s in start.steps if s.position > moment.step.position)
    if start is end:
        assert start.loop is not None
        assert moment.distance is not None
        for distance in range(moment.distance - 1, 0, -1):
            yield from ((s, start.loop.back(distance)) for s in start.steps)
    else:
        yield from _rest_of_loop(start, moment)
        for segment in timeline.segments[moment.step.segment + 1 : step.segment]:
            if segment.loop is None:
                yield from ((s, {}) for s in segment.steps)
    yield from ((s, {}) for s in end.steps if s.position < step.position)


def _rest_of_loop(segment: Segment, moment: Execution) -> Iterator[tuple[Step, Shift]]:
    if segment.loop is None:
        return
    for from_last in range(moment.from_last - 1, -1, -1):
        yield from ((s, segment.loop.last(from_last)) for s in segment.steps)
