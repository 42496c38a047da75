"""When a search is over: near the speed of light, or nothing gained for long; and what a rule would have saved.

The rules and the return on investment are those of "muCUTLASS and speed-of-light guidance" [arXiv 2603.29010].
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, log10
from typing import Literal

from attrs import frozen

Why = Literal["near the bound", "no gain"]


@frozen
class Rule:
    """epsilon: stop at (1 + epsilon) times the bound. attempts: stop after so many without gain; None: never.

    to_beat: microseconds that the best must be below before either holds. gain: the least share of the best's time
    that counts as one.
    """

    epsilon: float | None = None
    attempts: int | None = None
    to_beat: float = float("inf")
    gain: float = 0.0


@frozen
class Replay:
    """What a rule would have made of a recorded run.

    trials: after which it stops, all of the run's where it never does. saved: share of the run's trials.
    kept: the run's best time over the rule's, at most 1; 0 where nothing had passed. why: None: it never stopped.
    """

    trials: int
    saved: float
    kept: float
    why: Why | None

    @property
    def efficiency(self) -> float:
        """The result kept, over the share of trials it took: what one trial is worth beside those of the whole run."""
        return self.kept / (1 - self.saved)


def stop(rule: Rule, times: Sequence[float | None], bound: float) -> Why | None:
    """Whether a search is over after these trials, in order. times: microseconds, None for a trial that did not pass.

    bound: the speed of light, in microseconds.
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
    """The least time, and after how many trials there was a last gain."""
    best, marked, last = float("inf"), float("inf"), 0
    for number, time in enumerate(times, start=1):
        if time is None:
            continue
        best = min(best, time)
        if time < marked * (1 - gain) or not isfinite(marked):
            marked, last = time, number
    return (best, last) if isfinite(best) else (None, 0)


def replay(rule: Rule, times: Sequence[float | None], bound: float) -> Replay:
    """The rule asked after each trial of a run. Raises ValueError for a run of no trials."""
    if not times:
        raise ValueError("a run of no trials")
    after, why = len(times), None
    for number in range(1, len(times) + 1):
        why = stop(rule, times[:number], bound)
        if why is not None:
            after = number
            break
    reached, all_of_it = _best(times[:after], 0.0)[0], _best(times, 0.0)[0]
    kept = 0.0 if reached is None or all_of_it is None else all_of_it / reached
    return Replay(after, 1 - after / len(times), kept, why)


def roi(speedup: float, gap: float, implementing: float, risk: float) -> float:
    """The return on investment of a hypothesis: S ^ (1 + max(0, log10(g / 5))) / (R_impl * R_perf).

    speedup: S, expected. gap: g, the best time over the speed of light: far from it bold steps weigh more.
    implementing, risk: R_impl, how hard it is to build, and R_perf, how unsure its effect, both above 0.
    Raises ValueError for a number that is not above 0.
    """
    if not min(speedup, gap, implementing, risk) > 0:
        raise ValueError(f"not all of {(speedup, gap, implementing, risk)} are above 0")
    return speedup ** (1 + max(0.0, log10(gap / 5))) / (implementing * risk)
