"""Credit across techniques by the area under the curve of their improvements [Fialho 2010, section 3.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log, sqrt

from argus.policy.planner import Observation

WINDOW = 50
"""Observations that count: what helped long ago says little of a kernel that is near its bound."""


def improvements(tried: Sequence[Observation]) -> list[tuple[tuple[str, ...], bool]]:
    """Of each observation the techniques that its design has, and whether it was the fastest until then."""
    best: float | None = None
    found: list[tuple[tuple[str, ...], bool]] = []
    for each in tried:
        better = each.microseconds is not None and (best is None or each.microseconds < best)
        best = each.microseconds if better else best
        found.append((tuple(dict.fromkeys(step.technique for step in each.choice.steps)), better))
    return found


def area(uses: Sequence[bool]) -> float:
    """From 0 to 1: of the uses of one technique, earliest first, how many improved, later ones counting for more."""
    weights = range(1, len(uses) + 1)
    return sum(weight for weight, better in zip(weights, uses, strict=True) if better) / sum(weights) if uses else 0.0


def earned(tried: Sequence[Observation], exploration: float = 0.5) -> Mapping[str, float]:
    """Of each technique tried within the window: its area, and more the less often it was used."""
    window = improvements(tried)[-WINDOW:]
    uses: dict[str, list[bool]] = {}
    for techniques, better in window:
        for name in techniques:
            uses.setdefault(name, []).append(better)
    return {
        name: area(each) + exploration * sqrt(2 * log(len(window)) / len(each)) if len(window) > 1 else area(each)
        for name, each in uses.items()
    }
