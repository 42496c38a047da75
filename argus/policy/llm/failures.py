"""Calls that bring no answer: what is said of them, and what to do."""

from __future__ import annotations

from attrs import evolve, field, frozen

from argus.core.diagnostic import Diagnostic
from argus.policy.llm.reply import Trouble
from argus.policy.llm.retries import passing
from argus.policy.llm.texts import sentence

_SAID = 300
"""Characters of what an endpoint says."""


@frozen
class Failed:
    """passing: it may go better the next time. wait: seconds that the endpoint asks for. billed: it may have cost."""

    diagnostic: Diagnostic
    passing: bool
    wait: float | None = None
    billed: bool = False

    @property
    def trouble(self) -> Trouble:
        """Where it is given up."""
        return given_up(self.diagnostic, lasting=not self.passing)


def given_up(found: Diagnostic, *, lasting: bool) -> Trouble:
    return Trouble(found.code, found.message, found.help, lasting)


@frozen
class Place:
    """Who is asked, and where. key: left out of whatever is said."""

    model: str
    address: str
    key: str = field(repr=False)

    def silent(self, what: str, *, billed: bool) -> Failed:
        message = f"the endpoint {self.address} {self._fit(what)}"
        repair = "try again later, or go on with the planner `bandit`; check the address if it never answers"
        return Failed(Diagnostic("E923", "error", message, help=repair), passing=True, billed=billed)

    def late(self, seconds: float) -> Failed:
        return self.silent(f"did not answer within {seconds:.3g} s", billed=True)

    def refused(self, said: str) -> Failed:
        message = f"the endpoint refused the request for `{self.model}`: {self._fit(said)}"
        repair = (
            "check the model's name and the address; for a model that refuses a forced tool or an effort, see "
            "`tool_choice` and `effort` in docs/planner-llm.md"
        )
        return Failed(Diagnostic("E922", "error", message, help=repair), passing=False)

    def status(self, status: int, said: str, wait: float | None) -> Failed:
        """An answer with a status that is no success. wait: seconds, from its header."""
        if status in (401, 403):
            message = f"the endpoint does not accept the key ({status}): {self._fit(said)}"
            repair = "set ANTHROPIC_API_KEY to a key of this endpoint, and see that the address is the endpoint's"
            return Failed(Diagnostic("E921", "error", message, help=repair), passing=False)
        if not passing(status):
            return self.refused(f"{status}: {said}")
        later = "" if wait is None else f" (asks to wait {wait:.3g} s)"
        return evolve(self.silent(f"answered {status}{later}: {said}", billed=False), wait=wait)

    def _fit(self, said: str) -> str:
        """What an endpoint says, made fit to be shown; some repeat the key."""
        return sentence(said.replace(self.key, "[key]"), _SAID)
