"""How much is asked of a solver, and what it has answered."""

from __future__ import annotations

from attrs import define, field

from argus.core.index import Cond
from argus.core.values.equality import Equal, Undecided
from argus.core.values.expr import Expr


@define(eq=False)
class Questions:
    """How much more is asked or looked at: beyond it nothing is known, and expressions stay as they are.

    answers, simplified, equal: what has been found about the same flow; equal: whether two expressions are under facts.
    """

    left: int = 4000
    answers: dict[tuple[tuple[Cond, ...], Cond], bool] = field(factory=dict["tuple[tuple[Cond, ...], Cond]", bool])
    simplified: dict[tuple[tuple[Cond, ...], Expr], Expr] = field(factory=dict["tuple[tuple[Cond, ...], Expr]", Expr])

    equal: dict[tuple[Expr, Expr, tuple[Cond, ...]], Equal | Undecided] = field(
        factory=dict["tuple[Expr, Expr, tuple[Cond, ...]]", "Equal | Undecided"]
    )

    def renewed(self) -> Questions:
        """As many as at first, with what has been found so far."""
        return Questions(answers=self.answers, simplified=self.simplified, equal=self.equal)

    def one(self) -> bool:
        """Whether one more is allowed."""
        self.left -= 1
        return self.left >= 0
