"""The barrier of a machine with transaction bytes: what arrivals, landings and waits do, and nothing else.

One meaning, shared by the interpreter and the bounded search for schedules. Source: PTX ISA, mbarrier objects.
"""

from __future__ import annotations

from attrs import evolve, frozen


@frozen
class Mbarrier:
    """An mbarrier: expected arrivals a phase, phases completed, arrivals and bytes pending in the current one.

    bytes may be negative for a while: data may land before the arrival that announces it.
    """

    count: int
    phases: int = 0
    arrived: int = 0
    bytes: int = 0

    @property
    def overrun(self) -> bool:
        """More arrivals in one phase than were declared: the hardware's count is undefined from here on."""
        return self.arrived > self.count


def arrive(barrier: Mbarrier, count: int = 1, expected: int = 0) -> Mbarrier:
    """`count` arrivals, the announcement of `expected` bytes first."""
    return _settled(evolve(barrier, arrived=barrier.arrived + count, bytes=barrier.bytes + expected))


def complete_tx(barrier: Mbarrier, count: int) -> Mbarrier:
    """`count` bytes have been written."""
    return _settled(evolve(barrier, bytes=barrier.bytes - count))


def _settled(barrier: Mbarrier) -> Mbarrier:
    """The phase is complete once all have arrived and all announced bytes have landed."""
    if barrier.arrived == barrier.count and barrier.bytes == 0:
        return Mbarrier(barrier.count, barrier.phases + 1)
    return barrier


def passes(barrier: Mbarrier, phase: int) -> bool:
    """Whether a wait for `phase` ends now. Parities are compared, so a wait two phases off is not told apart."""
    return barrier.phases % 2 != phase % 2


@frozen
class NamedBarrier:
    """A named barrier: all `threads` arrive, then those that wait leave. generation: times it has filled."""

    threads: int
    arrived: int = 0
    generation: int = 0


def arrive_named(barrier: NamedBarrier, threads: int) -> NamedBarrier:
    """`threads` more have arrived."""
    total = barrier.arrived + threads
    if total == barrier.threads:
        return NamedBarrier(barrier.threads, 0, barrier.generation + 1)
    return NamedBarrier(barrier.threads, total, barrier.generation)
