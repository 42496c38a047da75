"""Times of launches that may be compared: interleaved, in two regimes, with the launch cost hidden.

The same kernel differs by up to a fifth between back-to-back calls, which sit at the power limit, and single calls
after idle, which run at the highest clock. Times are therefore taken of all candidates in turn, in rounds whose order
rotates, and compared round by round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from argus.core.diagnostic import ArgusError
from argus.runtime.cuda.driver import Driver

Call = Callable[[], object]


@frozen
class Regime:
    """pause: seconds of idleness before each measurement. burst: milliseconds of calls in a row, 0 for one call.

    lead: as long as the burst how many times the same calls run before, so that a candidate pays with its own heat
    and not with that of the one before it.
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
"""Seconds that the slowest candidate takes on the host for a call, with room to spare."""


@frozen
class Stopwatch:
    """Events of the driver on one stream. hold: keeps the GPU busy for so many seconds, for launches to gather."""

    driver: Driver
    stream: int
    hold: Callable[[float], object]

    def milliseconds(self, call: Call, calls: int = 1) -> float:
        """The mean of so many calls in a row, their launches hidden."""
        begin, end = (self.driver.call("cuEventCreate", 0) for _ in range(2))
        self.hold(_LAUNCH * (calls + 5))
        self.driver.call("cuEventRecord", begin, self.stream)
        for _ in range(calls):
            call()
        self.driver.call("cuEventRecord", end, self.stream)
        self.driver.call("cuEventSynchronize", end)
        took = float(self.driver.call("cuEventElapsedTime", begin, end)) / calls
        for event in (begin, end):
            self.driver.call("cuEventDestroy", event)
        return took


@frozen
class Times:
    """Milliseconds of each candidate, one a round; those of a round belong together."""

    regime: Regime
    rounds: Mapping[str, Sequence[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.rounds[name])

    def ratios(self, name: str, peer: str) -> list[float]:
        """Time of the peer over that of the candidate, round by round: above 1 where the candidate is faster."""
        return [theirs / ours for ours, theirs in zip(self.rounds[name], self.rounds[peer], strict=True)]


def interleaved(watch: Stopwatch, calls: Mapping[str, Call], regime: Regime, rounds: int) -> Times:
    """So many rounds of all candidates, each round beginning with the next of them."""
    names = list(calls)
    bursts = {name: _burst(watch, calls[name], regime) for name in names}
    found: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            time.sleep(regime.pause)
            for _ in range(regime.lead * bursts[name] if regime.burst else 1):
                calls[name]()
            found[name].append(watch.milliseconds(calls[name], bursts[name]))
    return Times(regime, found)


def _burst(watch: Stopwatch, call: Call, regime: Regime) -> int:
    """Calls that fill the regime's burst, after a warm-up."""
    watch.milliseconds(call, 2)
    once = watch.milliseconds(call, 3)
    return max(1, min(_MOST_CALLS, round(regime.burst / max(once, 1e-3)))) if regime.burst else 1


def host_microseconds(call: Call, settle: Call, calls: int = 200) -> float:
    """What a launch takes on the host: the median of 5 runs of so many calls. settle: waits until the GPU is done."""
    runs: list[float] = []
    for _ in range(5):
        settle()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        runs.append((time.perf_counter() - start) / calls * 1e6)
    settle()
    return statistics.median(runs)


def driver_version(driver: Driver) -> str:
    """Of the CUDA driver's interface, such as 13.0; empty where it does not say."""
    try:
        number = int(driver.call("cuDriverGetVersion"))
    except ArgusError:
        return ""
    return f"{number // 1000}.{number % 1000 // 10}"
