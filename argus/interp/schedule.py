"""The adversary: when asynchronous operations take effect, and which wave moves next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, assert_never

import numpy as np
from attrs import frozen

Style = Literal["early", "late", "mixed"]
Order = Literal["random", "lowest", "highest", "round_robin"]


@frozen
class Schedule:
    """One behaviour of the machine, reproducible.

    style: asynchronous operations take effect at issue (early), when a wait forces them (late), or at
    moments drawn for each, with a completion rate drawn for each queue (mixed). order: which wave moves.
    """

    style: Style = "late"
    seed: int = 0
    order: Order = "random"


DIRECTED: tuple[Schedule, ...] = (
    Schedule("late", 0, "lowest"),
    Schedule("late", 0, "highest"),
    Schedule("late", 0, "round_robin"),
    Schedule("early", 0, "lowest"),
    Schedule("early", 0, "highest"),
)
"""The priority orders to try first: they find most faults at once."""


class Adversary:
    """The choices of one run under a schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._random = np.random.default_rng(schedule.seed)
        self._rates: dict[str, float] = {}
        self._turn = -1

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

    def advances(self, queue: str) -> bool:
        """Whether the oldest operation of a queue takes its next effect now (mixed style only)."""
        rate = self._rates.get(queue)
        if rate is None:
            rate = self._rates[queue] = float(self._random.random()) ** 2
        return float(self._random.random()) < rate
