"""What calls of a model cost: prices, what has been spent, and whether one more call may be made."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from argus.core.diagnostic import Diagnostic

_MILLION = 1e6
_PREAMBLE = 2_000
"""Tokens that an endpoint adds to a request that has a tool, at most."""
_PAGES = "https://platform.claude.com/docs/en/about-claude/pricing"
_DATED = re.compile(r"-\d{8}$")


@frozen
class Price:
    """US dollars for a million tokens: of input, of output, written to a cache for 5 minutes, read from it.

    source: where they are published, and when they were read there.
    """

    input: float
    output: float
    written: float
    read: float
    source: str


@frozen
class Model:
    """forced: whether the model accepts that the call of a tool is forced."""

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
    # Prices of prompts of up to 100,000 tokens; a prompt of ours has fewer bytes than that.
    "claude-haiku-5-5": _model(0.1, 0.5, 0.01, forced=False),
    "claude-haiku-4-5": _model(1.0, 5.0, 0.1, forced=True),
}
"""Models whose prices are known, by their names without a date."""


def known(model: str) -> Model | None:
    """What is known of a model; `claude-haiku-4-5-20251001` is a `claude-haiku-4-5`."""
    return MODELS.get(_DATED.sub("", model))


@frozen
class Usage:
    """Tokens of one call as its endpoint counted them. written, read: of the input, to and from its cache."""

    input: int
    output: int
    written: int = 0
    read: int = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.written + self.read


@frozen
class Spent:
    """Of all calls so far. dollars: of the tokens whose price is known; unpriced: how many others there are.

    supposed: tokens, within the others, of calls that ended without a count: as many as they may have been.
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
    """What a whole run may spend. None: as much as it takes."""

    dollars: float | None = 5.0
    tokens: int | None = None


MODEST = Limits()


def charged(usage: Usage, price: Price | None) -> Spent:
    """What one call cost."""
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


def at_most(size: int, answer: int, price: Price | None) -> Spent:
    """What one call may cost at most. size: bytes of its request, which are at least its tokens. answer: tokens."""
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
    """Why a call that costs `call` at most is not made (E924, E925); None where it is within the limits."""
    if limits.dollars is not None and price is None:
        message = f"the price of `{model}` is not known, so that spending at most ${limits.dollars:.2f} cannot be kept"
        return Diagnostic("E925", "error", message, help="give its price, or limit its tokens instead of its dollars")
    total = spent + call
    told = (("spent", str(spent)),)
    if limits.dollars is not None and total.dollars > limits.dollars:
        message = (
            f"one more call of `{model}` may cost ${call.dollars:.4f}, and ${spent.dollars:.4f} of "
            f"${limits.dollars:.2f} are spent"
        )
        return Diagnostic("E924", "error", message, facts=told, help="allow more dollars, or go on without the model")
    if limits.tokens is not None and total.tokens > limits.tokens:
        message = (
            f"one more call of `{model}` may take {call.tokens:,} tokens, and {spent.tokens:,} of "
            f"{limits.tokens:,} are spent"
        )
        return Diagnostic("E924", "error", message, facts=told, help="allow more tokens, or go on without the model")
    return None
