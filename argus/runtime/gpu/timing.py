"""Comparable launch times: candidates interleaved in rounds, in two power regimes, with launch overhead hidden.

The same kernel differs by up to a fifth between back-to-back calls, which run at the power limit, and single calls
after idle time, which run at the highest clock. So each round times all candidates, the order rotates from round to
round, and times are compared only within a round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from attrs import frozen

from argus.runtime.gpu.driver import GpuDriver

Call = Callable[[], object]


@frozen
class Regime:
    """A load pattern for timing. pause: idle seconds before each measurement. burst: milliseconds of back-to-back
    calls, 0 for a single call.

    lead: how many bursts of the same calls run untimed first, so that a candidate is timed at the temperature that it
    causes itself and not at that of its predecessor.
    """

    name: str
    pause: float
    burst: float
    lead: int


SUSTAINED = Regime("sustained", 0.0, 12.0, 3)
DUTY_CYCLED = Regime("duty-cycled", 0.02, 0.0, 0)
REGIMES = (SUSTAINED, DUTY_CYCLED)
_MOST_CALLS = 500
_LAUNCH = 30e-6
"""Upper bound in seconds on the host time of one call of the slowest candidate."""


class Watch(Protocol):
    """Times calls."""

    def milliseconds(self, call: Call, calls: int = 1) -> float:
        """The mean time of back-to-back calls, without launch overhead."""
        ...


@frozen
class Stopwatch:
    """Times calls by driver events on one stream. hold: keeps the GPU busy for some seconds, to queue launches."""

    driver: GpuDriver
    stream: int
    hold: Callable[[float], object]

    def milliseconds(self, call: Call, calls: int = 1) -> float:
        """The mean time of back-to-back calls, without launch overhead."""
        begin, end = (self.driver.new_event() for _ in range(2))
        self.hold(_LAUNCH * (calls + 5))
        self.driver.record(begin, self.stream)
        for _ in range(calls):
            call()
        self.driver.record(end, self.stream)
        self.driver.wait(end)
        took = self.driver.elapsed(begin, end) / calls
        for event in (begin, end):
            self.driver.drop(event)
        return took


@frozen
class Times:
    """Milliseconds of each candidate, one per round; compare them only within a round."""

    regime: Regime
    rounds: Mapping[str, Sequence[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.rounds[name])

    def ratios(self, name: str, peer: str) -> list[float]:
        """The peer's time divided by the candidate's, per round: above 1 where the candidate is faster."""
        return [theirs / ours for ours, theirs in zip(self.rounds[name], self.rounds[peer], strict=True)]


def time_interleaved(
    watch: Watch,
    calls: Mapping[str, Call],
    regime: Regime,
    rounds: int,
    sleep: Callable[[float], object] | None = None,
) -> Times:
    """Time all candidates in each of `rounds` rounds; each round starts with the next candidate.

    sleep: idles for some seconds; `time.sleep` for None.
    """
    idle = time.sleep if sleep is None else sleep
    names = list(calls)
    bursts = {name: _burst(watch, calls[name], regime) for name in names}
    found: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            idle(regime.pause)
            for _ in range(regime.lead * bursts[name] if regime.burst else 1):
                calls[name]()
            found[name].append(watch.milliseconds(calls[name], bursts[name]))
    return Times(regime, found)


def _burst(watch: Watch, call: Call, regime: Regime) -> int:
    """How many calls fill the regime's burst, measured after a warm-up."""
    watch.milliseconds(call, 2)
    once = watch.milliseconds(call, 3)
    return max(1, min(_MOST_CALLS, round(regime.burst / max(once, 1e-3)))) if regime.burst else 1


def host_microseconds(call: Call, settle: Call, calls: int = 200) -> float:
    """Host time of one launch in microseconds: the median of 5 runs of `calls` calls. settle: waits for the GPU."""
    runs: list[float] = []
    for _ in range(5):
        settle()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        runs.append((time.perf_counter() - start) / calls * 1e6)
    settle()
    return statistics.median(runs)
