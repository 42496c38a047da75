"""Data model of an optimisation technique: applicability, transformation, expected speedup, recorded experiments."""

from __future__ import annotations

from math import log
from typing import Literal

from attrs import frozen

Scope = Literal["global", "local", "instruction"]
Basis = Literal["time", "static model"]
SCOPES: tuple[Scope, ...] = ("global", "local", "instruction")
"""In the order in which a plan applies them: whole-kernel changes before local ones."""


@frozen
class Effect:
    """Speedup (time before over time after) where the technique applies: range and likely value.

    basis: measured times of a GPU, or predictions of the static model.
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
        """Standard deviation of the log speedup: a quarter of log(high / low), at least 0.03."""
        return max(0.03, (log(self.high) - log(self.low)) / 4)

    def __str__(self) -> str:
        return f"{self.low:.2f} to {self.high:.2f}, likely {self.likely:.2f} ({self.basis})"


@frozen
class Lineage:
    """An ablation in this repository: two designs that differ only in the technique.

    command: repeats it. shape: of the problem. without, design: names of both designs. ratio: time without over with.
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

    name: the file's name without `.md`. intent: one sentence. targets: where it exists. applies: name of the matcher
    (`argus.policy.matchers`) that is true of kernels it can still improve. preconditions: invariants that the verifier
    must prove for a kernel with it. transformation: name of its transformation (`argus.search.techniques`). risk: what
    may go wrong; signature: the symptom. text: the page below the front matter. conjecture: no experiment supports it.
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
    conjecture: bool = False

    @property
    def order(self) -> tuple[int, str]:
        """Sort key: wider scope first, then name."""
        return SCOPES.index(self.scope), self.name
