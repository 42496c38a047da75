"""A technique of the knowledge base: what it does to a kernel, when it may, and what it is worth."""

from __future__ import annotations

from math import log
from typing import Literal

from attrs import frozen

Scope = Literal["global", "local", "instruction"]
Basis = Literal["time", "static model"]
SCOPES: tuple[Scope, ...] = ("global", "local", "instruction")
"""In the order in which a plan takes them: what changes a whole kernel comes before what changes a part of it."""


@frozen
class Effect:
    """Time before over time after, where the technique applies: as little as `low`, as much as `high`.

    basis: whether these are times of a GPU or what the static model says.
    """

    low: float
    likely: float
    high: float
    basis: Basis

    @property
    def log_mean(self) -> float:
        return log(self.likely)

    @property
    def log_deviation(self) -> float:
        """From `low` to `high` as four standard deviations, and never less than a few percent."""
        return max(0.03, (log(self.high) - log(self.low)) / 4)

    def __str__(self) -> str:
        return f"{self.low:.2f} to {self.high:.2f}, likely {self.likely:.2f} ({self.basis})"


@frozen
class Lineage:
    """An experiment of this repository that showed it: two designs that differ in the technique alone.

    command: that repeats it. shape: of the problem. ratio: time without over time with.
    """

    command: str
    target: str
    shape: str
    without: str
    design: str
    ratio: float
    basis: Basis


@frozen
class Technique:
    """One file of kb/.

    name: as its file is called. intent: in a sentence. targets: machines that have it. applies: a matcher over the IR
    (`argus.policy.matchers`), true of kernels that it can still improve. preconditions: invariants that the verifier
    must prove of a kernel that has it. transformation: what makes a kernel have it (`argus.search.techniques`).
    risk:
    what may go wrong; signature: how that shows. text: the page below its front matter.
    """

    name: str
    title: str
    intent: str
    scope: Scope
    targets: tuple[str, ...]
    applies: str
    preconditions: tuple[str, ...]
    transformation: str
    effect: Effect
    risk: str
    signature: str
    lineage: tuple[Lineage, ...]
    text: str = ""

    @property
    def order(self) -> tuple[int, str]:
        """Techniques of wider scope first."""
        return SCOPES.index(self.scope), self.name
