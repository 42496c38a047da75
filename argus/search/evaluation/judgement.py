"""What the gate says of a candidate: plain data, which journals keep and processes hand to each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

from argus.policy.planner import Outcome

Stage = Literal["parse", "invariants", "limits", "interpreter", "compile", "device", "timing"]
STAGES: tuple[Stage, ...] = ("parse", "invariants", "limits", "interpreter", "compile", "device", "timing")
"""In the order in which a candidate goes through them."""
Reward = Literal["measured", "predicted"]


@frozen
class Judgement:
    """How far a candidate came.

    stage: the last one that it entered. why: what stopped it, in a sentence; empty if nothing did. microseconds: of one
    call, by `reward`. seconds: that each stage took. counterexample: of the schema `argus.report/1`, where a claim is
    refuted. resources: registers, spills and shared memory as the compiler reports them. notes: what the static model
    leaves out. place: of the code that was built, for this run alone.
    """

    name: str
    outcome: Outcome
    stage: Stage
    why: str = ""
    microseconds: float | None = None
    reward: Reward = "predicted"
    seconds: Mapping[str, float] = field(factory=dict[str, float])
    counterexample: Mapping[str, Any] | None = None
    resources: Mapping[str, float] = field(factory=dict[str, float])
    notes: tuple[str, ...] = ()
    place: str = ""

    @property
    def took(self) -> float:
        """Seconds of all stages."""
        return sum(self.seconds.values())

    @property
    def compiled(self) -> bool:
        """Whether a compiler was started for it at all."""
        return "compile" in self.seconds
