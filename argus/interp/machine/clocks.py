"""Happens-before in a kernel whose agents meet at barriers: vector clocks of strands, bits of asynchronous operations.

A strand is threads whose statements are in program order of each other: the first thread of an agent, the rest of its
warp, any other warp. What a strand knows is a clock: of every strand, up to which of its releases; of every
asynchronous operation, whether it has read its sources and whether it is complete. The order is that of the barriers'
meaning, not of what one schedule happened to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from attrs import define, field

Mark = tuple[int, int]
"""A strand, and its time."""


@define(eq=False)
class Clock:
    """What is known to have happened.

    times: of each strand, the last time known. done: bits of asynchronous operations. fenced, fenced_done: the part
    of both that a proxy fence has passed since, so that the asynchronous proxy sees what was written there.
    """

    times: list[int]
    fenced: list[int]
    done: int = 0
    fenced_done: int = 0

    @classmethod
    def of(cls, strands: int) -> Clock:
        return cls([0] * strands, [0] * strands)

    def copy(self) -> Clock:
        return Clock(self.times.copy(), self.fenced.copy(), self.done, self.fenced_done)

    def join(self, other: Clock) -> None:
        self.times = list(map(max, self.times, other.times))
        self.fenced = list(map(max, self.fenced, other.fenced))
        self.done |= other.done
        self.fenced_done |= other.fenced_done

    def fence(self) -> None:
        """Everything known is visible to the asynchronous proxy from here on."""
        self.fenced, self.fenced_done = self.times.copy(), self.done

    def knows(self, marks: Iterable[Mark]) -> bool:
        return all(time <= self.times[strand] for strand, time in marks)

    def knows_of(self, marks: Iterable[Mark]) -> bool:
        """Whether something that several strands did together is known to have begun: one of them has told."""
        return any(time <= self.times[strand] for strand, time in marks)

    def published(self, marks: Iterable[Mark]) -> bool:
        """Whether the asynchronous proxy sees what was written at these times."""
        return all(time <= self.fenced[strand] for strand, time in marks)


def meet(clocks: Sequence[Clock]) -> Clock:
    """What all of them know: the view of an operation that they issue together."""
    found = clocks[0].copy()
    for clock in clocks[1:]:
        found.times = list(map(min, found.times, clock.times))
        found.fenced = list(map(min, found.fenced, clock.fenced))
        found.done &= clock.done
        found.fenced_done &= clock.fenced_done
    return found


@define(eq=False)
class Strands:
    """The strands of a block and what each knows. bounds: first thread of the block and the one after the last."""

    bounds: tuple[tuple[int, int], ...]
    clocks: list[Clock] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.clocks = [Clock.of(len(self.bounds)) for _ in self.bounds]
        for strand, clock in enumerate(self.clocks):
            clock.times[strand] = 1

    @classmethod
    def cut(cls, threads: int, unit: int, leaders: set[int]) -> Strands:
        """Warps of `unit` threads, each leader (the first of its warp) apart."""
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
        """These strands publish what they know; what they do next is later."""
        for strand in strands:
            into.join(self.clocks[strand])
            self.clocks[strand].times[strand] += 1

    def acquire(self, strands: Iterable[int], known: Clock) -> None:
        for strand in strands:
            self.clocks[strand].join(known)

    def fence(self, strands: Iterable[int]) -> None:
        """A proxy fence by these strands, for all that each of them knows."""
        for strand in strands:
            self.clocks[strand].fence()
            self.clocks[strand].times[strand] += 1

    def now(self, strands: Iterable[int]) -> tuple[Mark, ...]:
        """The present times of these strands: known to others once they have released."""
        return tuple((strand, self.clocks[strand].times[strand]) for strand in strands)

    def covered(self, strands: Iterable[int], bits: int) -> None:
        """These strands have waited for asynchronous operations."""
        for strand in strands:
            self.clocks[strand].done |= bits
