"""Diagnostics of failed model calls: what went wrong, whether to retry, and how to repair it."""

from __future__ import annotations

from attrs import evolve, field, frozen

from argus.core.diagnostic import Diagnostic
from argus.policy.llm.reply import Trouble
from argus.policy.llm.retries import is_transient
from argus.policy.llm.texts import printable_line

_SAID = 300
"""Most characters quoted from an endpoint's message."""


@frozen
class FailedCall:
    """A failed call. transient: a retry may succeed. wait: seconds requested by the endpoint. billed: it may cost."""

    diagnostic: Diagnostic
    transient: bool
    wait: float | None = None
    billed: bool = False

    @property
    def trouble(self) -> Trouble:
        """The failure as the result of the question, without further attempts."""
        return to_trouble(self.diagnostic, lasting=not self.transient)


def to_trouble(found: Diagnostic, *, lasting: bool) -> Trouble:
    return Trouble(found.code, found.message, found.help, lasting)


@frozen
class Endpoint:
    """Model and address of the endpoint. key: redacted from all messages."""

    model: str
    address: str
    key: str = field(repr=False)

    def no_answer(self, what: str, *, billed: bool) -> FailedCall:
        message = f"the endpoint {self.address} {self._fit(what)}"
        repair = "try again later, or go on with the planner `bandit`; check the address if it never answers"
        return FailedCall(Diagnostic("E923", "error", message, help=repair), transient=True, billed=billed)

    def timed_out(self, seconds: float) -> FailedCall:
        return self.no_answer(f"did not answer within {seconds:.3g} s", billed=True)

    def refused(self, said: str) -> FailedCall:
        message = f"the endpoint refused the request for `{self.model}`: {self._fit(said)}"
        repair = (
            "check the model's name and the address; for a model that refuses a forced tool or an effort, see "
            "`tool_choice` and `effort` in docs/planner-llm.md"
        )
        return FailedCall(Diagnostic("E922", "error", message, help=repair), transient=False)

    def status(self, status: int, said: str, wait: float | None) -> FailedCall:
        """An HTTP status other than success. wait: seconds of the `retry-after` header."""
        if status in (401, 403):
            message = f"the endpoint does not accept the key ({status}): {self._fit(said)}"
            repair = "set ANTHROPIC_API_KEY to a key of this endpoint, and see that the address is the endpoint's"
            return FailedCall(Diagnostic("E921", "error", message, help=repair), transient=False)
        if not is_transient(status):
            return self.refused(f"{status}: {said}")
        later = "" if wait is None else f" (asks to wait {wait:.3g} s)"
        return evolve(self.no_answer(f"answered {status}{later}: {said}", billed=False), wait=wait)

    def _fit(self, said: str) -> str:
        """The endpoint's message, printable and without the key, which some endpoints repeat."""
        return printable_line(said.replace(self.key, "[key]"), _SAID)
