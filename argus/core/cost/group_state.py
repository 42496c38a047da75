"""Where those are who play: clocks, registers, queues, and the barriers at which they wait for one another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from attrs import define, field

from argus.core.barriers import Mbarrier
from argus.core.cost.groups import Group
from argus.core.index import Symbol
from argus.core.ir import Buffer, Stmt

Steps = Iterator[None]
Slot = tuple[Buffer, int]
"""A barrier of a buffer of them."""
Entry = tuple[float, float]
"""Of what is asynchronous: when its source has been read, and when all of it is done."""


@define(eq=False)
class MbarrierState:
    """A barrier, and who waits at it for which phase."""

    barrier: Mbarrier
    waiting: list[tuple[int, GroupState]] = field(factory=lambda: list[tuple[int, GroupState]]())  # noqa: PLW0108 reason: the class comes below


@define(eq=False)
class NamedBarrierState:
    """Threads that have arrived where several groups meet, and who waits for the others."""

    arrived: int = 0
    waiting: list[GroupState] = field(factory=lambda: list[GroupState]())  # noqa: PLW0108 reason: the class comes below


@define(eq=False)
class Block:
    """over: when the last of its groups is done."""

    gates: dict[Slot, MbarrierState] = field(factory=dict[Slot, MbarrierState])
    meetings: dict[str, NamedBarrierState] = field(factory=dict[str, NamedBarrierState])
    over: float = 0.0


def _entries() -> defaultdict[str, list[Entry]]:
    return defaultdict(list)


@define(eq=False)
class GroupState:
    """A group on its way.

    now: its clock. threads: that run what it is at. ready: when a register tile holds what was asked for. queues: when
    entries end, oldest first; open: entries that no `Commit` has closed. stored: when its stores to shared memory are
    done. last: when all that it has started is. at: the statement it is at. waits: cycles that it stood still.
    """

    group: Group
    block: Block
    now: float
    threads: int
    known: dict[Symbol, int]
    ready: dict[Buffer, float] = field(factory=dict[Buffer, float])
    counters: dict[Buffer, int] = field(factory=dict[Buffer, int])
    queues: defaultdict[str, list[Entry]] = field(factory=_entries)
    open: defaultdict[str, list[Entry]] = field(factory=_entries)
    waits: defaultdict[Stmt, float] = field(factory=lambda: defaultdict[Stmt, float](float))
    stored: float = 0.0
    last: float = 0.0
    at: Stmt | None = None
    asleep: bool = False
    done: bool = False
    steps: Steps = field(factory=lambda: iter(tuple[None, ...]()))

    def wait(self, stmt: Stmt, until: float) -> None:
        if until > self.now:
            self.waits[stmt] += until - self.now
            self.now = until
