"""Program order with iterations: which executions of a step came before another, nearest first."""

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
"""Iterations that are looked back; what is older is not modelled."""


@frozen(eq=False)
class Execution:
    """An execution of `step` before the one under consideration, in the iteration `shift` speaks of.

    exists: the condition, in terms of the later execution, that it took place. distance: iterations back
    within one loop, 0 for the same; None if it belongs to another segment. lap: its iteration within its
    own loop counted from the last, 0 for straight segments.
    """

    step: Step
    shift: Shift
    exists: Cond
    distance: int | None
    lap: int = 0


@frozen(eq=False)
class Horizon:
    """Before this point of a loop nothing is known if `reached` holds."""

    reached: Cond
    segment: Segment


class History:
    """The executions before any step of one timeline; those of whole laps are worked out once."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._laps: dict[Segment, tuple[Execution | Horizon, ...]] = {}
        self._passed: dict[Segment, tuple[Execution | Horizon, ...]] = {}

    def before(self, step: Step) -> Iterator[Execution | Horizon]:
        """Every earlier execution that touches storage, nearest first, with the limits of what is looked at."""
        segment = self._timeline.segments[step.segment]
        for earlier in reversed(segment.steps):
            if earlier.position < step.position and _touches(earlier):
                yield Execution(earlier, {}, earlier.guard, 0)
        if segment.loop is not None:
            if segment not in self._laps:
                self._laps[segment] = tuple(_earlier_laps(segment))
            yield from self._laps[segment]
        for other in reversed(self._timeline.segments[: step.segment]):
            if other not in self._passed:
                self._passed[other] = tuple(_of_segment(other))
            yield from self._passed[other]


def _touches(step: Step) -> bool:
    return isinstance(step.stmt, Copy | Map | Fold | Mma | Alloc | Reset) or any(asserted_views(step.stmt))


def _earlier_laps(segment: Segment) -> Iterator[Execution | Horizon]:
    loop = segment.loop
    assert loop is not None
    for distance in range(1, HORIZON + 1):
        shift, came = loop.back(distance), loop.has_earlier(distance)
        for earlier in reversed(segment.steps):
            if _touches(earlier):
                exists = algebra.all_of((came, substitute(earlier.guard, shift)))
                yield Execution(earlier, shift, exists, distance)
    yield Horizon(loop.has_earlier(HORIZON + 1), segment)


def _of_segment(segment: Segment) -> Iterator[Execution | Horizon]:
    if segment.loop is None:
        yield from (
            Execution(earlier, {}, earlier.guard, None) for earlier in reversed(segment.steps) if _touches(earlier)
        )
        return
    loop = segment.loop
    for lap in range(HORIZON):
        shift = loop.last(lap)
        ran = algebra.lt(lap, loop.trips)
        for earlier in reversed(segment.steps):
            if _touches(earlier):
                exists = algebra.all_of((ran, substitute(earlier.guard, shift)))
                yield Execution(earlier, shift, exists, None, lap)
    yield Horizon(algebra.lt(HORIZON, loop.trips), segment)


def steps_between(timeline: Timeline, moment: Execution, step: Step) -> Iterator[tuple[Step, Shift]]:
    """Steps that certainly lie between an earlier execution and `step`, where their guards hold, in order.

    Loops in between count as not entered: only what happens on every path is listed.
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
    for lap in range(moment.lap - 1, -1, -1):
        yield from ((s, segment.loop.last(lap)) for s in segment.steps)
