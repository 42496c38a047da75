"""Defines the solver interface of the verifier: prove a goal, decide a goal, check satisfiability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from argus.core.index import Cond
from argus.core.query import Answer
from argus.core.values.effort import Effort


class Prover(Protocol):
    """A solver session, or a wrapper that answers the same queries."""

    @property
    def effort(self) -> Effort:
        """What the normal forms of values may still take in this proof."""
        ...

    def prove(self, hypotheses: Sequence[Cond], goal: Cond) -> Answer:
        """Unsat if the goal follows from the hypotheses; Sat with a counterexample if it does not."""
        ...

    def follows(self, hypotheses: Sequence[Cond], goal: Cond, *, steps: int | None = None) -> bool:
        """Whether the solver proves the goal from the hypotheses; False also if it cannot decide.

        steps: a lower step limit than the budget's, for each query.
        """
        ...

    def check(self, assertions: Sequence[Cond]) -> Answer:
        """Sat if the assertions are jointly satisfiable."""
        ...
