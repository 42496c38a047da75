"""The interface to a solver: the three kinds of query that the verifier asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from argus.core.index import Cond
from argus.core.query import Answer


class Prover(Protocol):
    """A solver session, or anything with the same queries."""

    def prove(self, hypotheses: Sequence[Cond], goal: Cond) -> Answer:
        """Unsat if the goal follows from the hypotheses; Sat carries a counterexample."""
        ...

    def follows(self, hypotheses: Sequence[Cond], goal: Cond) -> bool:
        """Whether the goal provably follows; gives no counterexample."""
        ...

    def check(self, assertions: Sequence[Cond]) -> Answer:
        """Sat if all assertions can hold at once."""
        ...
