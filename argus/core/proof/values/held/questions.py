"""How much is asked of a solver, and what it has answered."""

from __future__ import annotations

from attrs import define, field

from argus.core.index import Cond
from argus.core.values.expr import Expr


@define(eq=False)
class Questions:
    """How much more is asked or looked at: beyond it nothing is known, and expressions stay as they are.

    answers, simplified: what has been found about the same flow.
    """

    left: int = 4000
    answers: dict[tuple[tuple[Cond, ...], Cond], bool] = field(factory=dict["tuple[tuple[Cond, ...], Cond]", bool])
    simplified: dict[tuple[tuple[Cond, ...], Expr], Expr] = field(factory=dict["tuple[tuple[Cond, ...], Expr]", Expr])

    def renewed(self) -> Questions:
        """As many as at first, with what has been found so far."""
        return Questions(answers=self.answers, simplified=self.simplified)

    def one(self) -> bool:
        """Whether one more is allowed."""
        self.left -= 1
        return self.left >= 0
