"""Schedules: when asynchronous operations take effect, and which wave or agent executes next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import permutations
from typing import Literal, TypeVar, assert_never

import numpy as np
from attrs import evolve, frozen

from argus.core.check import formula_claims, read_terms
from argus.core.ir import Compare, Kernel, Map, walk
from argus.core.ir.element_walk import nodes

Style = Literal["early", "late", "mixed"]
Order = Literal["random", "lowest", "highest", "round_robin"]
Actor = Literal["producer", "first", "rest", "engine"]
EnabledSets = frozenset[frozenset[Actor]]
"""The sets of enabled actors from which a run chose one."""
T = TypeVar("T")


@frozen
class Schedule:
    """One reproducible behaviour of the machine.

    style: asynchronous operations take effect at issue (early); when a wait forces them or nothing else can execute
    (late); or at random times, with a random completion rate per queue (mixed). order: which wave, or unit of an
    agent, executes next. priority: for kernels with roles, the static priority of the actors: the first role
    (producer), the first agent of the second role (first), all others (rest), and the engine of asynchronous
    operations; within an actor `order` decides. It replaces the style. draw: which random inputs to use for a seed,
    since integers that a kernel reads determine what it does; and which kind of floats, where values are compared.
    rounds: floats are computed in their own types, on numbers that these round, where values are compared; else in
    float64.
    """

    style: Style = "late"
    seed: int = 0
    order: Order = "random"
    priority: tuple[Actor, ...] = ()
    draw: int = 0
    rounds: bool = False


DIRECTED: tuple[Schedule, ...] = (
    Schedule("late", 0, "lowest"),
    Schedule("late", 0, "highest"),
    Schedule("late", 0, "round_robin"),
    Schedule("early", 0, "lowest"),
    Schedule("early", 0, "highest"),
)
"""The schedules to try first on kernels without roles, which find most faults."""


def _orders() -> tuple[tuple[Actor, ...], ...]:
    actors: tuple[Actor, ...] = ("producer", "first", "rest", "engine")
    return tuple(permutations(actors))


ROLES_DIRECTED: tuple[Schedule, ...] = tuple(Schedule("late", 0, "lowest", priority) for priority in _orders())
"""All static priorities of a kernel with roles; the first one prefers the producer and defers completions."""


def directed(kernel: Kernel, *, compares: bool = False) -> tuple[Schedule, ...]:
    """The schedules to try first on a kernel; the first one with several draws of the inputs that its claims need.

    compares: whether a program that launches it compares values with a formula.
    """
    known = DIRECTED if kernel.roles is None else ROLES_DIRECTED
    if any(True for stmt in walk(kernel.body) for _ in read_terms(stmt)):
        draws = DRAWS
    else:
        draws = 1
        if compares or any(True for _ in formula_claims(kernel)):
            draws = FLOAT_DRAWS if compares_elements(kernel) else FLOAT_DRAWS - 1
    return (*(evolve(known[0], draw=draw) for draw in range(draws)), *known[1:])


def rounding(kernel: Kernel) -> tuple[Schedule, ...]:
    """The schedules to try where rounding may decide otherwise than a claim over the reals says, one for each draw."""
    known = DIRECTED if kernel.roles is None else ROLES_DIRECTED
    return tuple(evolve(known[0], draw=draw, rounds=True) for draw in range(ROUNDED_DRAWS))


def compares_elements(kernel: Kernel) -> bool:
    """Whether a choice of the kernel compares elements, so that equal ones matter."""
    maps = (stmt for stmt in walk(kernel.body) if isinstance(stmt, Map))
    return any(isinstance(node, Compare) for stmt in maps for node in nodes(stmt.elem))


FLOAT_DRAWS = 4
"""The number of draws of floats to try where a claim is about values, each of another kind; the last one, of equal
values, only where a kernel compares elements.
"""
ROUNDED_DRAWS = 4
"""The number of draws of floats to try where rounding may decide, two of each kind."""
DRAWS = 6
"""The number of draws of integers to try; most indexing faults appear with the first draw of unequal integers."""


_ENGINE: frozenset[Actor] = frozenset(("engine",))


def first_of(priority: Sequence[Actor], able: Collection[Actor]) -> Actor | None:
    """The first actor in priority order that is able to execute; None if none is."""
    return next((actor for actor in priority if actor in able), None)


class Adversary:
    """Makes the choices of one run under a schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._random = np.random.default_rng(schedule.seed)
        self._rates: dict[str, float] = {}
        self._last_wave = -1
        self._met: set[frozenset[Actor]] = set()

    @property
    def only_lowest_matters(self) -> bool:
        """Whether a choice depends only on the lowest enabled unit of each actor."""
        return bool(self.schedule.priority) and self.schedule.order == "lowest"

    @property
    def enabled_sets(self) -> EnabledSets:
        """The sets of enabled actors so far."""
        return frozenset(self._met)

    def next_wave(self, ready: Sequence[int]) -> int:
        """One of the enabled waves, which are given in ascending order."""
        match self.schedule.order:
            case "random":
                return ready[int(self._random.integers(len(ready)))]
            case "lowest":
                return ready[0]
            case "highest":
                return ready[-1]
            case "round_robin":
                self._last_wave = next((wave for wave in ready if wave > self._last_wave), ready[0])
                return self._last_wave
            case _:
                assert_never(self.schedule.order)

    def next_actor(self, ready: Sequence[tuple[int, Actor]], *, engine: bool) -> int | None:
        """One of the enabled units; None to let an asynchronous operation proceed, which `engine` says is possible."""
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
        """The operation to advance, of the given ones in order of preference."""
        if self.schedule.style == "mixed":
            return heads[int(self._random.integers(len(heads)))]
        return heads[-1 if self.schedule.order == "highest" else 0]

    def advances(self, queue: str) -> bool:
        """Whether the oldest operation of a queue performs its next effect now (mixed style only)."""
        rate = self._rates.get(queue)
        if rate is None:
            rate = self._rates[queue] = float(self._random.random()) ** 2
        return float(self._random.random()) < rate
