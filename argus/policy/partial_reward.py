"""Partial reward of a trial: by the stage of the gate that it reached, then by its time."""

from __future__ import annotations

from typing import Literal

from argus.policy.planner import Observation

Stage = Literal["parse", "invariants", "limits", "interpreter", "compile", "device", "timing"]
STAGES: tuple[Stage, ...] = ("parse", "invariants", "limits", "interpreter", "compile", "device", "timing")
"""Of the gate, in the order in which a candidate passes them."""
_PASSING = 0.5


def partial_reward(found: Observation, bound: float) -> float:
    """From 0 to 1: below 0.5 the share of stages passed, from 0.5 on the share of the speed of light.

    bound: speed of light in microseconds. A candidate that cheats, or whose process died, gets 0.
    """
    if found.microseconds is not None:
        return _PASSING + (1 - _PASSING) * min(1.0, bound / found.microseconds)
    if found.outcome in ("cheat", "lost") or found.stage not in STAGES:
        return 0.0
    return _PASSING * STAGES.index(found.stage) / len(STAGES)
