"""Verdicts of the bench harness, and its configurable checks."""

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
"""numbers: each element is within the error bound of f32 sums and one rounding. precision: so is the mean square error.
poison: outputs are NaN before every call, also a repeated one. guards: bytes around operands are unchanged. intact:
inputs are unchanged. contents: an address has new contents in each call. addresses: operands are at new addresses.
shapes: sizes that are unlikely to be tuned for. secret: unpredictable inputs. adversarial: zeros, one-hot rows, huge
ranges, cancellation. reference: expected results are never on the device. timed: outputs of timed calls are checked.
whole device: the host clock stops when all streams are idle. clocks: host clock and device events agree. linear: twice
the calls take twice the time. physics: no time is below the machine's lower bound. instruments: measuring functions
have not been replaced."""
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
    """A valid time. microseconds: marginal time of one call in a burst, by device events."""

    microseconds: float


@frozen
class Caught:
    """A failed check. why: one sentence."""

    check: Check
    why: str

    @property
    def outcome(self) -> Outcome:
        """`cheat` if the candidate works only when it appears to be checked; `wrong` if it never does."""
        return "cheat" if self.check in _DISHONEST else "wrong"

    def __str__(self) -> str:
        return f"{self.check}: {self.why}"


Verdict = Passed | Caught


@frozen
class Plan:
    """Parameters of a test run.

    seed: of all random choices; must be secret to the candidate. without: checks to disable, for ablations. seeds:
    number of unseen shapes. rounds: of timing. tries: most measurements of times that are inconsistent or unsteady.
    most_bytes: of a burst's operands. most_calls: of a burst, even. most_products: limit of multiply-adds of a float64
    comparison. agreement: relative tolerance between clocks, bursts and rounds. fixed: allowed fixed time of a burst
    in microseconds. launch: most host microseconds per launch.
    """

    seed: int
    without: frozenset[Check] = field(factory=frozenset[Check], converter=frozenset[Check])
    seeds: int = 3
    rounds: int = 5
    tries: int = 8
    most_bytes: int = 1 << 30
    most_calls: int = 16
    most_products: int = 1 << 32
    agreement: float = 0.2
    fixed: float = 15.0
    launch: float = 30.0

    def has(self, check: Check) -> bool:
        """Whether a check is enabled."""
        return check not in self.without
