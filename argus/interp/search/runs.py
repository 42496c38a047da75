"""A cache of runs: two priority schedules that agree on every choice of a run share that run."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, evolve, field, frozen

from argus.core.ir import Kernel
from argus.interp.search.schedule import EnabledSets, Schedule, first_of
from argus.interp.violation import Violation

Sizes = tuple[int, ...]


@frozen
class _Run:
    """A finished run. enabled_sets: the sets of enabled actors that the schedule chose from."""

    schedule: Schedule
    enabled_sets: EnabledSets
    violations: tuple[Violation, ...]

    def is_run_of(self, schedule: Schedule) -> bool:
        """Whether a schedule that differs in its priority alone would have made the same choices."""
        mine, other = self.schedule.priority, schedule.priority
        return mine == other or (
            bool(mine and other) and all(first_of(mine, able) == first_of(other, able) for able in self.enabled_sets)
        )


@define(eq=False)
class Runs:
    """The violations of one kernel's runs, by sizes and by schedule without its priority.

    A priority chooses by the set of enabled actors alone. As long as two priorities choose the same actor, the machine
    is in the same state under both; so a run without a set on which they differ is the run of both.

    executed: the statements that all runs executed, those of each wave counted.
    """

    executed: int = field(default=0, init=False)

    _kernel: Kernel | None = field(default=None, init=False)
    _made: dict[tuple[Sizes, Schedule], list[_Run]] = field(factory=dict[tuple[Sizes, Schedule], list[_Run]])

    def bind(self, kernel: Kernel) -> None:
        """Bind the cache to a kernel, whose statements violations refer to; it must not be used for another."""
        assert self._kernel in (None, kernel), f"runs of another kernel than `{kernel.name}`"
        self._kernel = kernel

    def violations(
        self, sizes: Sizes, schedule: Schedule, run: Callable[[], tuple[tuple[Violation, ...], EnabledSets, int]]
    ) -> tuple[Violation, ...]:
        """The violations at these sizes under this schedule: cached, or of `run()`. Exceptions are not cached.

        run: also returns how many statements it executed.
        """
        cached = self._made.setdefault((sizes, evolve(schedule, priority=())), [])
        for made in cached:
            if made.is_run_of(schedule):
                return made.violations
        violations, enabled_sets, executed = run()
        self.executed += executed
        cached.append(_Run(schedule, enabled_sets, violations))
        return violations
