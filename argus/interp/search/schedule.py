"""The adversary: when asynchronous operations take effect, and which wave or agent moves next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import permutations
from typing import Literal, TypeVar, assert_never

import numpy as np
from attrs import evolve, frozen

from argus.core.check import read_terms
from argus.core.ir import Kernel, walk

Style = Literal["early", "late", "mixed"]
Order = Literal["random", "lowest", "highest", "round_robin"]
Actor = Literal["producer", "first", "rest", "engine"]
Met = frozenset[frozenset[Actor]]
"""Of a run, each set of actors that could move when one of them was chosen."""
T = TypeVar("T")


@frozen
class Schedule:
    """One behaviour of the machine, reproducible.

    style: asynchronous operations take effect at issue (early), when a wait forces them or nobody else can move
    (late), or at moments drawn for each, with a completion rate drawn for each queue (mixed). order: which wave, or
    unit of an agent, moves. priority: of a kernel with roles, who moves if they can, the first before the next: the
    first role, the first agent of the second, all others, and what executes asynchronous operations; within each by
    `order`. It takes the place of the style. draw: which of the inputs that a seed gives, of which the integers that a
    kernel reads decide what it does.
    """

    style: Style = "late"
    seed: int = 0
    order: Order = "random"
    priority: tuple[Actor, ...] = ()
    draw: int = 0


DIRECTED: tuple[Schedule, ...] = (
    Schedule("late", 0, "lowest"),
    Schedule("late", 0, "highest"),
    Schedule("late", 0, "round_robin"),
    Schedule("early", 0, "lowest"),
    Schedule("early", 0, "highest"),
)
"""The priority orders to try first: they find most faults at once."""


def _orders() -> tuple[tuple[Actor, ...], ...]:
    actors: tuple[Actor, ...] = ("producer", "first", "rest", "engine")
    return tuple(permutations(actors))


ROLES_DIRECTED: tuple[Schedule, ...] = tuple(Schedule("late", 0, "lowest", priority) for priority in _orders())
"""All static priorities of a kernel with roles, the producer first and landings last before all others."""


def directed(kernel: Kernel) -> tuple[Schedule, ...]:
    """The schedules to try first on a kernel, under one of them several draws of the integers that it reads."""
    known = DIRECTED if kernel.roles is None else ROLES_DIRECTED
    if not any(True for stmt in walk(kernel.body) for _ in read_terms(stmt)):
        return known
    return (*(evolve(known[0], draw=draw) for draw in range(DRAWS)), *known[1:])


DRAWS = 6
"""Draws of integers to try: most faults of who reads which show in the first that is not all alike."""


_ENGINE: frozenset[Actor] = frozenset(("engine",))


def first_of(priority: Sequence[Actor], able: Collection[Actor]) -> Actor | None:
    """Who moves of those that can, None if nobody can."""
    return next((actor for actor in priority if actor in able), None)


class Adversary:
    """The choices of one run under a schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._random = np.random.default_rng(schedule.seed)
        self._rates: dict[str, float] = {}
        self._turn = -1
        self._met: set[frozenset[Actor]] = set()

    @property
    def looks_at_the_lowest(self) -> bool:
        """Whether of each actor the lowest that can move is all that a choice depends on."""
        return bool(self.schedule.priority) and self.schedule.order == "lowest"

    @property
    def met(self) -> Met:
        return frozenset(self._met)

    def next_wave(self, ready: Sequence[int]) -> int:
        """One of the waves that can move, ascending."""
        match self.schedule.order:
            case "random":
                return ready[int(self._random.integers(len(ready)))]
            case "lowest":
                return ready[0]
            case "highest":
                return ready[-1]
            case "round_robin":
                self._turn = next((wave for wave in ready if wave > self._turn), ready[0])
                return self._turn
            case _:
                assert_never(self.schedule.order)

    def next_actor(self, ready: Sequence[tuple[int, Actor]], *, engine: bool) -> int | None:
        """One of the units that can move, None for an asynchronous operation (if `engine`); one of both can."""
        if not self.schedule.priority:
            return self.next_wave([unit for unit, _ in ready]) if ready else None
        able: frozenset[Actor] = frozenset(whose for _, whose in ready)
        if engine:
            able |= _ENGINE
        self._met.add(able)
        actor = first_of(self.schedule.priority, able)
        if actor == "engine" or not ready:
            return None
        return self.next_wave([unit for unit, whose in ready if actor in (None, whose)])

    def next_operation(self, heads: Sequence[T]) -> T:
        """Which operation moves when nobody else can, of those that can, the one to prefer first."""
        if self.schedule.style == "mixed":
            return heads[int(self._random.integers(len(heads)))]
        return heads[-1 if self.schedule.order == "highest" else 0]

    def advances(self, queue: str) -> bool:
        """Whether the oldest operation of a queue takes its next effect now (mixed style only)."""
        rate = self._rates.get(queue)
        if rate is None:
            rate = self._rates[queue] = float(self._random.random()) ** 2
        return float(self._random.random()) < rate
