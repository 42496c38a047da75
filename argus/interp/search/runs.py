"""Runs that need not be made again: of two schedules that decide alike wherever one of them had to, one is run."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, evolve, field, frozen

from argus.core.ir import Kernel
from argus.interp.search.schedule import Met, Schedule, first_of
from argus.interp.violation import Violation

Sizes = tuple[int, ...]


@frozen
class _Made:
    """A run that was made. met: who could move when it chose, each set of actors once."""

    schedule: Schedule
    met: Met
    violations: tuple[Violation, ...]

    def serves(self, schedule: Schedule) -> bool:
        """Whether a schedule that differs in its priority alone would have made the same choices."""
        mine, other = self.schedule.priority, schedule.priority
        return mine == other or (
            bool(mine and other) and all(first_of(mine, able) == first_of(other, able) for able in self.met)
        )


@define(eq=False)
class Runs:
    """What runs of one kernel have violated, by their sizes and all of their schedule but its priority.

    A priority decides by who can move, and by nothing else: as long as two of them choose the same actor the machine
    is in the same state under both. So a run that has met no set of actors on which they differ is the run of both.
    """

    _kernel: Kernel | None = field(default=None, init=False)
    _made: dict[tuple[Sizes, Schedule], list[_Made]] = field(factory=dict[tuple[Sizes, Schedule], list[_Made]])

    def belong(self, kernel: Kernel) -> None:
        """From here on they are this kernel's: violations name its statements, which no other has."""
        assert self._kernel in (None, kernel), f"runs of another kernel than `{kernel.name}`"
        self._kernel = kernel

    def violated(
        self, sizes: Sizes, schedule: Schedule, run: Callable[[], tuple[tuple[Violation, ...], Met]]
    ) -> tuple[Violation, ...]:
        """What `run`, at these sizes under this schedule, violates. What it raises is not kept."""
        alike = self._made.setdefault((sizes, evolve(schedule, priority=())), [])
        for made in alike:
            if made.serves(schedule):
                return made.violations
        violations, met = run()
        alike.append(_Made(schedule, met, violations))
        return violations
