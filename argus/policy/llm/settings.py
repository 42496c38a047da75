"""Settings of the language-model planner: model, endpoint, timeouts and spending limits."""

from __future__ import annotations

from math import isfinite
from typing import Literal
from urllib.parse import urlsplit

from attrs import field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.llm.budget import DEFAULT_LIMITS, Limits, Price, known_model

ToolChoice = Literal["by model", "forced", "auto"]
Effort = Literal["low", "medium", "high"]
DEFAULT_MODEL = "claude-sonnet-5-5"


@frozen
class Settings:
    """Raises ArgusError (E927) for an invalid value.

    base_url: an endpoint of the Messages API; None for ANTHROPIC_BASE_URL, or else Anthropic's own. key: None for
    ANTHROPIC_API_KEY. max_tokens: of one answer, thinking included. timeout: seconds for one call; patience: seconds
    for one question with all its retries. attempts: calls per question that may fail. repairs: how often an unusable
    answer is requested again. price: overrides the price table. tool_choice: whether the tool call is forced; some
    models refuse that. effort: passed to the endpoint; None for its default. every: observations between plans. spread:
    temperature of rank sampling; 0 ranks by utility. rounds: repairs of a refused kernel before it counts as a
    candidate. grace: seconds that a free worker waits for an answer before the bandit fills in.
    """

    model: str = DEFAULT_MODEL
    base_url: str | None = None
    key: str | None = field(default=None, repr=False)
    max_tokens: int = 16_000
    timeout: float = 300.0
    patience: float = 900.0
    attempts: int = 5
    repairs: int = 2
    limits: Limits = DEFAULT_LIMITS
    price: Price | None = None
    tool_choice: ToolChoice = "by model"
    effort: Effort | None = None
    every: int = 4
    spread: float = 0.0
    rounds: int = 2
    grace: float = 0.0

    def __attrs_post_init__(self) -> None:
        faults = (*self._numbers(), *self._texts())
        if faults:
            message = f"settings of the model cannot be used: {faults[0]}"
            repair = "see docs/planner-llm.md for the settings and what they take"
            raise ArgusError(Diagnostic("E927", "error", message, notes=faults[1:], help=repair))

    def _numbers(self) -> tuple[str, ...]:
        limits, price = self.limits, self.price
        least = {
            "max_tokens": (self.max_tokens, 1),
            "attempts": (self.attempts, 1),
            "repairs": (self.repairs, 0),
            "every": (self.every, 1),
            "spread": (self.spread, 0.0),
            "rounds": (self.rounds, 0),
            "grace": (self.grace, 0.0),
            "limits.dollars": (limits.dollars, 0.0),
            "limits.tokens": (limits.tokens, 0),
            "price.input": (None if price is None else price.input, 0.0),
            "price.output": (None if price is None else price.output, 0.0),
            "price.written": (None if price is None else price.written, 0.0),
            "price.read": (None if price is None else price.read, 0.0),
        }
        low = [
            f"`{name}` is {value}, expected at least {bound}"
            for name, (value, bound) in least.items()
            if value is not None and not (isfinite(value) and value >= bound)
        ]
        seconds = {"timeout": self.timeout, "patience": self.patience}
        none = [
            f"`{name}` is {value}, expected seconds above 0"
            for name, value in seconds.items()
            if not (isfinite(value) and value > 0)
        ]
        return (*low, *none)

    def _texts(self) -> tuple[str, ...]:
        faults: list[str] = []
        if not self.model.strip():
            faults.append("`model` is empty, expected a name as the endpoint knows it")
        if self.base_url is not None:
            faults.extend(wrong_address(self.base_url))
        return tuple(faults)

    @property
    def pricing(self) -> Price | None:
        """The price to charge; None if unknown."""
        found = known_model(self.model)
        return self.price or (None if found is None else found.price)

    @property
    def forced(self) -> bool:
        """Whether requests force the tool call."""
        found = known_model(self.model)
        by_model = found is None or found.forced
        return self.tool_choice == "forced" or (self.tool_choice == "by model" and by_model)


def wrong_address(address: str) -> tuple[str, ...]:
    """Errors of an endpoint address; empty if it is valid."""
    expected = "expected one like `https://host/path`"
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as problem:
        return (f"`base_url` is not a URL: {problem}, {expected}",)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        return ("`base_url` has a user, a query or a fragment, expected none; pass the key by its own setting",)
    if not address.isascii() or not address.isprintable() or " " in address:
        return (f"`base_url` has a character that is not allowed in a URL, {expected}",)
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return (f"`base_url` is `{address}`, {expected}",)
    return ()
