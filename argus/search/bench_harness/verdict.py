"""What an examination finds, and which of its checks found it."""

from __future__ import annotations

from typing import Literal, get_args

from attrs import field, frozen

from argus.policy.planner import Outcome

Check = Literal[
    "numbers",
    "precision",
    "poison",
    "guards",
    "intact",
    "contents",
    "addresses",
    "shapes",
    "secret",
    "adversarial",
    "reference",
    "timed",
    "whole device",
    "clocks",
    "linear",
    "physics",
    "instruments",
]
"""numbers: each element is within what float32 sums and one rounding may cause. precision: so is the error's mean
square. poison: outputs hold no numbers before a call, also a repeated one. guards: bytes around operands stay. intact:
inputs stay. contents: an address has other contents from call to call. addresses: contents have other addresses.
shapes: extents that nobody tunes for. secret: inputs that nobody can know. adversarial: zeros, one-hot rows, huge
ranges, cancellations. reference: what is expected never lies on the device. timed: timed calls are held to the same.
whole device: the host's clock runs until all streams are done. clocks: it agrees with the device's. linear: twice the
calls take twice the time. physics: no time is below what the machine can do. instruments: what measures is what it
was."""
CHECKS: tuple[Check, ...] = get_args(Check)
_DISHONEST: tuple[Check, ...] = (
    "poison",
    "contents",
    "addresses",
    "timed",
    "clocks",
    "linear",
    "physics",
    "instruments",
)


@frozen
class Passed:
    """microseconds: of one call, by the device's events: what one more call adds to a burst."""

    microseconds: float


@frozen
class Caught:
    """check: that found it. why: in a sentence."""

    check: Check
    why: str

    @property
    def outcome(self) -> Outcome:
        """`cheat` for what does its work only when it seems to be looked at; `wrong` for what never does."""
        return "cheat" if self.check in _DISHONEST else "wrong"

    def __str__(self) -> str:
        return f"{self.check}: {self.why}"


Verdict = Passed | Caught


@frozen
class Plan:
    """How much is examined.

    seed: all that is drawn comes from it; a candidate must not know it. without: checks that are left out, to show
    what they are for. seeds: unseen shapes that are tried. rounds: of timing. most_bytes: of the operands of a burst.
    most_calls: in a burst, even. most_products: that a comparison with float64 makes. agreement: share by which the
    clocks, or the calls of a burst, may differ. fixed: microseconds that a burst may take beside its calls.
    launch: microseconds of a call on the host, at most.
    """

    seed: int
    without: frozenset[Check] = field(factory=frozenset[Check], converter=frozenset[Check])
    seeds: int = 3
    rounds: int = 5
    most_bytes: int = 1 << 30
    most_calls: int = 16
    most_products: int = 1 << 32
    agreement: float = 0.2
    fixed: float = 15.0
    launch: float = 30.0

    def has(self, check: Check) -> bool:
        return check not in self.without
