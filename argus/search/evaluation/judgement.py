"""Data model of the gate's judgement of a candidate, as stored in journals and passed between processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

from argus.policy.partial_reward import STAGES, Stage
from argus.policy.planner import Outcome

__all__ = ["STAGES", "Judgement", "Reward", "Stage"]
Reward = Literal["measured", "predicted"]


@frozen
class Judgement:
    """Result of the gate for one candidate.

    stage: the last one entered. why: reason of rejection, empty if it passed. microseconds: time of one call, measured
    or predicted by `reward`. seconds: by stage. counterexample: of the schema `argus.report/1`, if a claim is refuted.
    resources: registers, spills and shared memory from the compiler's report. notes: caveats, such as effects that the
    static model ignores. place: path of the built code, valid during this run only. diagnostics: of a rejection, as
    text with source lines. breakdown: busy microseconds of each unit in the static model. limiting: what bounds the
    time there: unit, occupancy, and the line with the longest stall.
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
    diagnostics: tuple[str, ...] = ()
    breakdown: Mapping[str, float] = field(factory=dict[str, float])
    limiting: str = ""

    @property
    def took(self) -> float:
        """Total seconds of all stages."""
        return sum(self.seconds.values())

    @property
    def compiled(self) -> bool:
        """Whether the candidate reached the compiler."""
        return "compile" in self.seconds
