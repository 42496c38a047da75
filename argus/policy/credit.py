"""Credit assignment to techniques by the area under the curve (AUC) of improvements [Fialho 2010, section 3.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log, sqrt

from argus.policy.planner import Observation

WINDOW = 50
"""Length of the sliding window of observations: old improvements say little about a kernel near its bound."""


def improvements(tried: Sequence[Observation]) -> list[tuple[tuple[str, ...], bool]]:
    """For each observation, its design's techniques and whether it was the fastest so far."""
    best: float | None = None
    found: list[tuple[tuple[str, ...], bool]] = []
    for each in tried:
        better = each.microseconds is not None and (best is None or each.microseconds < best)
        best = each.microseconds if better else best
        found.append((tuple(dict.fromkeys(step.technique for step in each.choice.steps)), better))
    return found


def area_under_curve(uses: Sequence[bool]) -> float:
    """AUC from 0 to 1 of one technique's uses, earliest first: the share that improved, weighted by rank."""
    weights = range(1, len(uses) + 1)
    return sum(weight for weight, better in zip(weights, uses, strict=True) if better) / sum(weights) if uses else 0.0


def technique_credit(tried: Sequence[Observation], exploration: float = 0.5) -> Mapping[str, float]:
    """Credit of each technique used within the window: its AUC plus a UCB exploration bonus for rare use."""
    window = improvements(tried)[-WINDOW:]
    uses: dict[str, list[bool]] = {}
    for techniques, better in window:
        for name in techniques:
            uses.setdefault(name, []).append(better)
    return {
        name: area_under_curve(each) + exploration * sqrt(2 * log(len(window)) / len(each))
        if len(window) > 1
        else area_under_curve(each)
        for name, each in uses.items()
    }
