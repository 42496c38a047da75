"""The budget of a search for a counterexample, in runs of the interpreter."""

from __future__ import annotations

from time import perf_counter

from attrs import define, field

from argus.core.query import Budget

STATEMENTS_PER_RUN = 85
"""The statements, each of them executed by one wave, up to which a run counts once."""
EVENTS_PER_RUN = 250
"""The same for a run by agents, whose statements take less time."""


@define(eq=False)
class RunBudget:
    """The number of runs that a search has left; counted, so that results don't depend on the load of the machine.

    seconds: timeout after which no further run starts, whatever is left: a safety net.
    """

    left: int
    seconds: float = Budget().seconds
    _begun: float = field(factory=perf_counter, init=False)

    @classmethod
    def of(cls, budget: Budget) -> RunBudget:
        """The run budget of one search under a verification budget."""
        return cls(budget.runs, budget.seconds)

    def spend(self) -> bool:
        """Count one more run; returns False if the budget is spent."""
        if self.left <= 0 or perf_counter() - self._begun > self.seconds:
            return False
        self.left -= 1
        return True

    def charge(self, executed: int, per_run: int = STATEMENTS_PER_RUN) -> int:
        """Count a run that executed this many statements as several, if it was long; returns as how many more."""
        more = executed // per_run
        self.left -= more
        return more
