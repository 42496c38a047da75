"""How much is asked of a solver, and what it has answered."""

from __future__ import annotations

from attrs import define, evolve, field

from argus.core.index import Cond
from argus.core.values.decided import open_tests
from argus.core.values.effort import Effort
from argus.core.values.equality import Equal, Undecided, by_normal_forms
from argus.core.values.expr import Expr
from argus.core.values.normal import NormalForm, normal_form

Facts = tuple[Cond, ...]
Asked = tuple[Expr, Expr, Facts]


@define(eq=False)
class Questions:
    """How much more is asked or looked at: beyond it nothing is known, and expressions stay as they are.

    answers, held, simplified, forms, equalities, left_open: what has been found about the same flow: of a solver, of
    what is known, simplified expressions, normal forms, whether two of these are equal under facts, and what such facts
    leave open in one.
    """

    left: int = 6000
    answers: dict[tuple[tuple[Cond, ...], Cond], bool] = field(factory=dict["tuple[tuple[Cond, ...], Cond]", bool])
    held: dict[tuple[tuple[Cond, ...], Cond], bool] = field(factory=dict["tuple[tuple[Cond, ...], Cond]", bool])
    simplified: dict[tuple[tuple[Cond, ...], Expr], Expr] = field(factory=dict["tuple[tuple[Cond, ...], Expr]", Expr])
    forms: dict[Expr, NormalForm | str] = field(factory=dict["Expr", "NormalForm | str"])
    equalities: dict[Asked, Equal | Undecided] = field(factory=dict["Asked", "Equal | Undecided"])
    left_open: dict[tuple[Expr, Facts], tuple[Cond, ...]] = field(
        factory=dict["tuple[Expr, Facts]", "tuple[Cond, ...]"]
    )

    def equal(self, one: Expr, two: Expr, facts: Facts, effort: Effort) -> Equal | Undecided:
        """Whether normal forms show two expressions to be equal. effort: what that may take."""
        key = one, two, facts
        if key not in self.equalities:
            self.equalities[key] = by_normal_forms(one, two, facts, self._form, effort)
        return self.equalities[key]

    def open_tests(self, of: Expr, facts: Facts, effort: Effort) -> tuple[Cond, ...]:
        """The tests and orders that the facts leave open in the normal form. effort: what that may take."""
        key = of, facts
        if key not in self.left_open:
            self.left_open[key] = open_tests(self._form(of, effort), facts, effort)
        return self.left_open[key]

    def _form(self, of: Expr, effort: Effort) -> NormalForm | str:
        if of not in self.forms:
            self.forms[of] = normal_form(of, effort)
        return self.forms[of]

    def renewed(self) -> Questions:
        """As many as at first, with what has been found so far."""
        return evolve(self, left=Questions().left)

    def one(self) -> bool:
        """Whether one more is allowed."""
        self.left -= 1
        return self.left >= 0
