"""Stopping rules of a search (near the speed of light, or no gain for long) and their replay on recorded runs.

The rules and the return on investment are those of "muCUTLASS and speed-of-light guidance" [arXiv 2603.29010].
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, log10
from typing import Literal

from attrs import frozen

StopReason = Literal["near the bound", "no gain"]


@frozen
class Rule:
    """epsilon: stop at (1 + epsilon) times the bound. attempts: stop after this many trials without gain. None: never.

    to_beat: microseconds that the best must beat before either rule applies. gain: least relative improvement that
    counts as a gain.
    """

    epsilon: float | None = None
    attempts: int | None = None
    to_beat: float = float("inf")
    gain: float = 0.0


@frozen
class Replay:
    """Outcome of a rule on a recorded run.

    trials: at which it stops, or the run's total. saved: fraction of trials saved. kept: the run's best time over the
    best when the rule stops, at most 1; 0 if nothing had passed. why: None if it never stops.
    """

    trials: int
    saved: float
    kept: float
    why: StopReason | None

    @property
    def efficiency(self) -> float:
        """Result kept over the fraction of trials used: value of a trial relative to the whole run."""
        return self.kept / (1 - self.saved)


def should_stop(rule: Rule, times: Sequence[float | None], bound: float) -> StopReason | None:
    """Why to stop after these trials, or None. times: microseconds in order, None for a trial that did not pass.

    bound: speed of light in microseconds.
    """
    best, last = _best(times, rule.gain)
    if best is None or not best < rule.to_beat:
        return None
    if rule.epsilon is not None and best <= (1 + rule.epsilon) * bound:
        return "near the bound"
    if rule.attempts is not None and len(times) - last >= rule.attempts:
        return "no gain"
    return None


def _best(times: Sequence[float | None], gain: float) -> tuple[float | None, int]:
    """The least time, and the number of the trial with the last gain."""
    best, marked, last = float("inf"), float("inf"), 0
    for number, time in enumerate(times, start=1):
        if time is None:
            continue
        best = min(best, time)
        if time < marked * (1 - gain) or not isfinite(marked):
            marked, last = time, number
    return (best, last) if isfinite(best) else (None, 0)


def replay(rule: Rule, times: Sequence[float | None], bound: float) -> Replay:
    """Apply the rule after each trial of a recorded run. Raises ValueError for a run without trials."""
    if not times:
        raise ValueError("a run without trials")
    after, why = len(times), None
    for number in range(1, len(times) + 1):
        why = should_stop(rule, times[:number], bound)
        if why is not None:
            after = number
            break
    reached, all_of_it = _best(times[:after], 0.0)[0], _best(times, 0.0)[0]
    kept = 0.0 if reached is None or all_of_it is None else all_of_it / reached
    return Replay(after, 1 - after / len(times), kept, why)


def roi(speedup: float, gap: float, implementing: float, risk: float) -> float:
    """Return on investment of a hypothesis: S ^ (1 + max(0, log10(g / 5))) / (R_impl * R_perf).

    speedup: expected S. gap: g, best time over the speed of light. implementing: R_impl, implementation effort. risk:
    R_perf, uncertainty of the effect. Raises ValueError for an argument that is not above 0.
    """
    if not min(speedup, gap, implementing, risk) > 0:
        raise ValueError(f"not all of {(speedup, gap, implementing, risk)} are above 0")
    return speedup ** (1 + max(0.0, log10(gap / 5))) / (implementing * risk)
