"""Vector clocks for happens-before: one entry per strand, and bits for the progress of asynchronous operations.

A strand is a set of threads in program order of each other: the first thread of an agent, the rest of its warp, any
other warp. A strand's clock says, for every strand, which of its releases happen before; and for every asynchronous
operation, whether its reads, and its completion, happen before. The order follows from the semantics of barriers, not
from the schedule of one run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from attrs import define, field

Mark = tuple[int, int]
"""A timestamp: a strand and its logical time."""


@define(eq=False)
class Clock:
    """A vector clock.

    times: per strand, the latest time that happens before. done: bits of asynchronous operations. fenced, fenced_done:
    the part of both that a proxy fence covers, so that the asynchronous proxy sees those writes.
    """

    times: list[int]
    fenced: list[int]
    done: int = 0
    fenced_done: int = 0

    @classmethod
    def of(cls, strands: int) -> Clock:
        """The zero clock of this number of strands."""
        return cls([0] * strands, [0] * strands)

    def copy(self) -> Clock:
        """An independent copy."""
        return Clock(self.times.copy(), self.fenced.copy(), self.done, self.fenced_done)

    def join(self, other: Clock) -> None:
        """The least upper bound, in place."""
        self.times = list(map(max, self.times, other.times))
        self.fenced = list(map(max, self.fenced, other.fenced))
        self.done |= other.done
        self.fenced_done |= other.fenced_done

    def fence(self) -> None:
        """A proxy fence: everything that happens before becomes visible to the asynchronous proxy."""
        self.fenced, self.fenced_done = self.times.copy(), self.done

    def knows(self, marks: Iterable[Mark]) -> bool:
        """Whether all these timestamps happen before."""
        return all(time <= self.times[strand] for strand, time in marks)

    def knows_any(self, marks: Iterable[Mark]) -> bool:
        """Whether one of these timestamps happens before, so that a collective operation has begun."""
        return any(time <= self.times[strand] for strand, time in marks)

    def published(self, marks: Iterable[Mark]) -> bool:
        """Whether the asynchronous proxy sees writes with these timestamps."""
        return all(time <= self.fenced[strand] for strand, time in marks)


def meet(clocks: Sequence[Clock]) -> Clock:
    """The greatest lower bound of clocks: the clock of an operation that their strands issue together."""
    found = clocks[0].copy()
    for clock in clocks[1:]:
        found.times = list(map(min, found.times, clock.times))
        found.fenced = list(map(min, found.fenced, clock.fenced))
        found.done &= clock.done
        found.fenced_done &= clock.fenced_done
    return found


@define(eq=False)
class Strands:
    """The strands of a cluster with their clocks. bounds: per strand, its first thread and the one after its last."""

    bounds: tuple[tuple[int, int], ...]
    clocks: list[Clock] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.clocks = [Clock.of(len(self.bounds)) for _ in self.bounds]
        for strand, clock in enumerate(self.clocks):
            clock.times[strand] = 1

    @classmethod
    def cut(cls, threads: int, unit: int, leaders: set[int]) -> Strands:
        """One strand per warp of `unit` threads; a leader, the first thread of its warp, is a strand of its own."""
        bounds: list[tuple[int, int]] = []
        for first in range(0, threads, unit):
            last = min(first + unit, threads)
            cuts = [first, first + 1, last] if first in leaders and last > first + 1 else [first, last]
            bounds += pairwise(cuts)
        return cls(tuple(bounds))

    def within(self, first: int, last: int) -> tuple[int, ...]:
        """The strands of the threads [first, last)."""
        return tuple(s for s, (start, stop) in enumerate(self.bounds) if first <= start and stop <= last)

    def release(self, strands: Iterable[int], into: Clock) -> None:
        """Release: join the strands' clocks into `into`, and advance their times."""
        for strand in strands:
            into.join(self.clocks[strand])
            self.clocks[strand].times[strand] += 1

    def acquire(self, strands: Iterable[int], known: Clock) -> None:
        """Acquire: join `known` into the strands' clocks."""
        for strand in strands:
            self.clocks[strand].join(known)

    def fence(self, strands: Iterable[int]) -> None:
        """A proxy fence by these strands, for everything that happens before in each of them."""
        for strand in strands:
            self.clocks[strand].fence()
            self.clocks[strand].times[strand] += 1

    def now(self, strands: Iterable[int]) -> tuple[Mark, ...]:
        """The current timestamps of these strands, which other strands acquire after a release."""
        return tuple((strand, self.clocks[strand].times[strand]) for strand in strands)

    def complete(self, strands: Iterable[int], bits: int) -> None:
        """These strands have waited for asynchronous operations, given by their bits."""
        for strand in strands:
            self.clocks[strand].done |= bits
