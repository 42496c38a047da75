"""The questions the verifier asks, and the party that answers them: a solver session, or anything like it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from argus.core.index import Cond
from argus.core.query import Answer


class Prover(Protocol):
    def prove(self, hypotheses: Sequence[Cond], goal: Cond) -> Answer:
        """Unsat if the goal follows from the hypotheses; Sat is a counterexample."""
        ...

    def follows(self, hypotheses: Sequence[Cond], goal: Cond) -> bool:
        """Whether the goal is known to follow, without a counterexample if not."""
        ...

    def check(self, assertions: Sequence[Cond]) -> Answer:
        """Whether all assertions can hold at once."""
        ...
