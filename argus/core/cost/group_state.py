"""The simulator's state: each thread group's clock, registers and completion queues, and the block's barriers."""

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
"""One barrier of a barrier buffer: the buffer and the index."""
Entry = tuple[float, float]
"""(read, done) of an asynchronous operation: the times at which its source has been read and it is complete."""


@define(eq=False)
class MbarrierState:
    """An mbarrier, and the (phase, group) pairs that wait on it."""

    barrier: Mbarrier
    waiting: list[tuple[int, GroupState]] = field(factory=lambda: list[tuple[int, GroupState]]())  # noqa: PLW0108 reason: the class comes below


@define(eq=False)
class NamedBarrierState:
    """A named barrier: threads that have arrived, and the groups that wait."""

    arrived: int = 0
    waiting: list[GroupState] = field(factory=lambda: list[GroupState]())  # noqa: PLW0108 reason: the class comes below


@define(eq=False)
class Block:
    """The barriers of one thread block. end: the time at which its last group finishes."""

    mbarriers: dict[Slot, MbarrierState] = field(factory=dict[Slot, MbarrierState])
    named_barriers: dict[str, NamedBarrierState] = field(factory=dict[str, NamedBarrierState])
    end: float = 0.0


def _entries() -> defaultdict[str, list[Entry]]:
    return defaultdict(list)


@define(eq=False)
class GroupState:
    """The simulation state of one thread group.

    now: its clock. threads: active at the current statement. ready: completion time of the load into each register
    tile. queues: completion times of entries, oldest first. open: entries that no `Commit` has closed. stored:
    completion time of its stores to shared memory. last: completion time of all its operations. at: the current
    statement. waits: stall cycles by statement.
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
