"""Semantics of mbarriers and named barriers: the effect of arrivals, transaction bytes and waits on their state.

The interpreter and the bounded search of schedules share it. Source: PTX ISA, mbarrier objects and `barrier`.
"""

from __future__ import annotations

from attrs import evolve, frozen


@frozen
class Mbarrier:
    """An mbarrier. count: expected arrivals per phase; phases: completed phases; arrived, bytes: of the current phase.

    bytes: the transaction count (tx-count); negative while data has landed that no arrival has announced yet.
    """

    count: int
    phases: int = 0
    arrived: int = 0
    bytes: int = 0

    @property
    def overrun(self) -> bool:
        """More arrivals in one phase than expected: from here on the hardware's count is undefined."""
        return self.arrived > self.count


def arrive(barrier: Mbarrier, count: int = 1, expected: int = 0) -> Mbarrier:
    """`expect_tx` of `expected` bytes, then `count` arrivals."""
    return _complete_phase(evolve(barrier, arrived=barrier.arrived + count, bytes=barrier.bytes + expected))


def complete_tx(barrier: Mbarrier, count: int) -> Mbarrier:
    """`complete_tx`: `count` bytes have been written."""
    return _complete_phase(evolve(barrier, bytes=barrier.bytes - count))


def _complete_phase(barrier: Mbarrier) -> Mbarrier:
    """Advance to the next phase once all arrivals were made and all announced bytes have landed."""
    if barrier.arrived == barrier.count and barrier.bytes == 0:
        return Mbarrier(barrier.count, barrier.phases + 1)
    return barrier


def passes(barrier: Mbarrier, phase: int) -> bool:
    """Whether a wait for `phase` returns now. It compares parities, so it can't distinguish phases two apart."""
    return barrier.phases % 2 != phase % 2


@frozen
class NamedBarrier:
    """A named barrier: waiting threads are released once `threads` have arrived. generation: completed rounds."""

    threads: int
    arrived: int = 0
    generation: int = 0


def arrive_named(barrier: NamedBarrier, threads: int) -> NamedBarrier:
    """The barrier after the arrival of `threads` more threads."""
    total = barrier.arrived + threads
    if total == barrier.threads:
        return NamedBarrier(barrier.threads, 0, barrier.generation + 1)
    return NamedBarrier(barrier.threads, total, barrier.generation)
