"""Cost accounting of model calls: prices, amounts spent, and the check of limits before each call."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from argus.core.diagnostic import Diagnostic

_MILLION = 1e6
_PREAMBLE = 2_000
"""Upper bound of the tokens that an endpoint adds to a request with a tool."""
_PAGES = "https://platform.claude.com/docs/en/about-claude/pricing"
_DATED = re.compile(r"-\d{8}$")


@frozen
class Price:
    """US dollars per million tokens: input, output, written to the 5-minute cache, read from it.

    source: where and when the prices were read.
    """

    input: float
    output: float
    written: float
    read: float
    source: str


@frozen
class Model:
    """Properties of a model. forced: whether it accepts a forced tool call."""

    price: Price
    forced: bool


def _model(input_: float, output: float, read: float, *, forced: bool) -> Model:
    return Model(Price(input_, output, 1.25 * input_, read, f"{_PAGES}, November 2026"), forced)


_FABLE, _OPUS = (10.0, 50.0), (5.0, 25.0)
MODELS: Mapping[str, Model] = {
    "claude-fable-5-1": _model(*_FABLE, 0.25, forced=False),
    "claude-fable-5": _model(*_FABLE, 1.0, forced=False),
    "claude-opus-5-5": _model(4.0, 20.0, 0.2, forced=False),
    "claude-opus-5": _model(*_OPUS, 0.5, forced=True),
    "claude-opus-4-8": _model(*_OPUS, 0.5, forced=True),
    "claude-opus-4-7": _model(*_OPUS, 0.5, forced=True),
    "claude-opus-4-6": _model(*_OPUS, 0.5, forced=True),
    "claude-opus-4-5": _model(*_OPUS, 0.5, forced=True),
    "claude-sonnet-5-5": _model(2.0, 10.0, 0.2, forced=False),
    "claude-sonnet-5": _model(2.0, 10.0, 0.2, forced=True),
    "claude-sonnet-4-6": _model(3.0, 15.0, 0.3, forced=True),
    # Prices for prompts of up to 100,000 tokens; our prompts have fewer bytes than that.
    "claude-haiku-5-5": _model(0.1, 0.5, 0.01, forced=False),
    "claude-haiku-4-5": _model(1.0, 5.0, 0.1, forced=True),
}
"""Models with known prices, by name without date suffix."""


def known_model(model: str) -> Model | None:
    """Look up a model, ignoring a date suffix: `claude-haiku-4-5-20251001` is `claude-haiku-4-5`."""
    return MODELS.get(_DATED.sub("", model))


@frozen
class Usage:
    """Tokens of one call as counted by the endpoint. written, read: input tokens written to and read from its cache."""

    input: int
    output: int
    written: int = 0
    read: int = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.written + self.read


@frozen
class Spent:
    """Total of all calls so far. dollars: cost of tokens with a known price; unpriced: number of the other tokens.

    supposed: tokens, included in the counts, of calls that ended without a usage report: their upper bound.
    """

    calls: int = 0
    input: int = 0
    output: int = 0
    written: int = 0
    read: int = 0
    supposed: int = 0
    unpriced: int = 0
    dollars: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.input + other.input,
            self.output + other.output,
            self.written + other.written,
            self.read + other.read,
            self.supposed + other.supposed,
            self.unpriced + other.unpriced,
            self.dollars + other.dollars,
        )

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.written + self.read

    def __str__(self) -> str:
        unpriced = f", {self.unpriced:,} of them of no known price" if self.unpriced else ""
        supposed = f", {self.supposed:,} of them supposed" if self.supposed else ""
        cached = f" ({self.read:,} from the cache)" if self.read else ""
        calls = "1 call" if self.calls == 1 else f"{self.calls:,} calls"
        return f"${self.dollars:.4f}: {calls}, {self.tokens:,} tokens{cached}{supposed}{unpriced}"


NOTHING = Spent()


@frozen
class Limits:
    """Spending limits of a whole run. None: unlimited."""

    dollars: float | None = 5.0
    tokens: int | None = None


DEFAULT_LIMITS = Limits()


def cost_of(usage: Usage, price: Price | None) -> Spent:
    """The cost of one call with reported usage."""
    return Spent(
        1,
        usage.input,
        usage.output,
        usage.written,
        usage.read,
        unpriced=usage.tokens if price is None else 0,
        dollars=0.0 if price is None else _dollars(usage, price),
    )


def _dollars(usage: Usage, price: Price) -> float:
    parts = (
        usage.input * price.input,
        usage.output * price.output,
        usage.written * price.written,
        usage.read * price.read,
    )
    return sum(parts) / _MILLION


def worst_case(size: int, answer: int, price: Price | None) -> Spent:
    """Upper bound of one call's cost. size: bytes of the request, at least its tokens. answer: most output tokens."""
    tokens = size + _PREAMBLE
    dearest = 0.0 if price is None else max(price.input, price.written, price.read) * tokens + price.output * answer
    return Spent(
        1,
        tokens,
        answer,
        supposed=tokens + answer,
        unpriced=tokens + answer if price is None else 0,
        dollars=dearest / _MILLION,
    )


def refusal(spent: Spent, call: Spent, limits: Limits, price: Price | None, model: str) -> Diagnostic | None:
    """Why a call with worst-case cost `call` may not be made (E924, E925); None if it is within the limits."""
    if limits.dollars is not None and price is None:
        message = f"the price of `{model}` is not known, so the limit of ${limits.dollars:.2f} cannot be enforced"
        return Diagnostic("E925", "error", message, help="give its price, or limit its tokens instead of its dollars")
    total = spent + call
    facts = (("spent", str(spent)),)
    if limits.dollars is not None and total.dollars > limits.dollars:
        message = (
            f"one more call of `{model}` may cost ${call.dollars:.4f}, and ${spent.dollars:.4f} of "
            f"${limits.dollars:.2f} are spent"
        )
        return Diagnostic("E924", "error", message, facts=facts, help="allow more dollars, or go on without the model")
    if limits.tokens is not None and total.tokens > limits.tokens:
        message = (
            f"one more call of `{model}` may take {call.tokens:,} tokens, and {spent.tokens:,} of "
            f"{limits.tokens:,} are spent"
        )
        return Diagnostic("E924", "error", message, facts=facts, help="allow more tokens, or go on without the model")
    return None
