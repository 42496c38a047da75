"""How many terms of polynomials normal forms may still go through: a count, so that no clock decides what is proved."""

from __future__ import annotations

from attrs import define

from argus.core.values.atoms import NoNormalFormError

TOO_LONG = "normal forms of it have more terms than the budget allows"


@define(eq=False)
class Effort:
    """What is left of a budget of terms. Terms count each time that they are gone through."""

    left: int

    def spend(self, terms: int) -> None:
        """Count so many terms. Raises NoNormalFormError where they are more than are left."""
        self.left -= terms
        if self.left < 0:
            raise NoNormalFormError(TOO_LONG)

    @property
    def is_spent(self) -> bool:
        """Whether a comparison was given up."""
        return self.left < 0


def unlimited() -> Effort:
    """An effort that no comparison spends."""
    return Effort(1 << 62)
