"""How many runs of the interpreter a search for a counterexample may make."""

from __future__ import annotations

from time import perf_counter

from attrs import define, field

from argus.core.query import Budget


@define(eq=False)
class RunBudget:
    """The runs that a search has left. They are counted, so a search finds the same on a busy machine.

    seconds: wall clock after which no further run is begun, whatever is left: a safety net for runs without end.
    """

    left: int
    seconds: float = Budget().seconds
    _begun: float = field(factory=perf_counter, init=False)

    @classmethod
    def of(cls, budget: Budget) -> RunBudget:
        return cls(budget.runs, budget.seconds)

    def spend(self) -> bool:
        """Whether one more run may be made, which is then counted."""
        if self.left <= 0 or perf_counter() - self._begun > self.seconds:
            return False
        self.left -= 1
        return True
