"""Values that are rounded to a type without infinities, such as e4m3: an infinite one has no number in it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf

from attrs import define, field, frozen

from argus.core.dtype import DType
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.values.held.facts import Known, Questions
from argus.core.proof.values.held.terms import heads
from argus.core.values.expr import Expr
from argus.core.values.infinities import infinities
from argus.core.values.limits import is_between


@frozen
class Cast:
    """A value that a step rounds to a type."""

    step: Step
    dtype: DType
    value: Expr


@define(eq=False)
class Casts:
    """The values that have been asked for and are rounded to types without infinities."""

    _found: dict[Cast, str | None] = field(factory=dict[Cast, "str | None"], init=False)

    def add(self, step: Step, dtype: DType, value: Expr) -> None:
        if not dtype.holds(inf):
            self._found.setdefault(Cast(step, dtype, value))

    def infinite(self, flow: Flow, questions: Questions, resolved: Callable[[Expr], Expr]) -> str:
        """Why one of them may be infinite; empty if none may.

        resolved: a value without opaque tiles of loops. What is left of those may be anything.
        """
        for cast in [each for each, reason in self._found.items() if reason is None]:
            value = resolved(cast.value)
            known = Known(flow, cast.step.context, questions)
            most = Fraction(cast.dtype.greatest)
            fits = not heads(value) and not infinities(value, known.holds)
            fits = fits or is_between(value, -most, most, known.holds)
            self._found[cast] = "" if fits else f"a number that may be infinite as {cast.dtype}"
        return next(filter(None, self._found.values()), "")
