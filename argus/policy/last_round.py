"""The last round of a search: the few fastest candidates, timed interleaved until told apart or called equal.

Times are compared within a round only. The median ratio of two candidates has a distribution-free interval, from the
order statistics of its rounds [W. J. Conover, "Practical Nonparametric Statistics", section 3.2], so that outliers of a
busy machine do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from math import comb, exp, inf, log
from statistics import fmean, median
from typing import Literal

from attrs import field, frozen

NEAR = 0.03
"""Single measurements within this share of the least are not told apart: they are of other minutes and temperatures."""
MOST = 6
"""Most finalists."""
EQUAL = 0.005
"""Candidates whose median ratio is certainly within this are called equal."""
BATCH = 12
"""Rounds between two looks at the times."""
BATCHES = 4
LEVEL = 0.05
"""Probability of any wrong decision in a last round, shared equally among its pairs and looks."""

Place = Literal["best", "equal", "slower", "not told apart", "wrong"]


@frozen
class Standing:
    """A finalist's result. medians: microseconds by regime. low, high: interval of its time over the best one's.

    why: of the place `wrong`: the check that it failed.
    """

    name: str
    place: Place
    medians: Mapping[str, float] = field(factory=dict[str, float])
    low: float = 1.0
    high: float = 1.0
    why: str = ""


@frozen
class Result:
    """Standings in order of time. rounds: of the longest comparison."""

    standings: tuple[Standing, ...]
    rounds: int


@frozen
class Batch:
    """Interleaved times in microseconds: by regime and name, one a round.

    Without regimes, a measuring function was replaced. wrong: names that failed a check, and why.
    """

    times: Mapping[str, Mapping[str, Sequence[float]]]
    wrong: Mapping[str, str] = field(factory=dict[str, str])


def finalists(times: Mapping[str, float]) -> tuple[str, ...]:
    """Names of the candidates whose single times in microseconds are near the least one, the fastest first."""
    if not times:
        return ()
    order = sorted(times, key=lambda name: times[name])
    return tuple(name for name in order if times[name] <= (1 + NEAR) * times[order[0]])[:MOST]


def median_interval(values: Sequence[float], level: float) -> tuple[float, float]:
    """An interval that contains the median with probability 1 - level; infinite if there are too few values."""
    ordered, count = sorted(values), len(values)
    below, outside = 0, 2.0**-count
    while 2 * outside <= level and below < count // 2:
        below += 1
        outside += comb(count, below) * 2.0**-count
    return (ordered[below - 1], ordered[count - below]) if below else (-inf, inf)


def compete(names: Sequence[str]) -> Generator[tuple[str, ...], Batch, Result]:
    """Yields the names to time in the next batch of rounds, is sent their times, and returns who is the best.

    A candidate that is told apart from the fastest drops out. All others are timed until none is in doubt.
    """
    level = LEVEL / (BATCHES * max(1, comb(len(names), 2)))
    gathered: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    out: dict[str, Standing] = {}
    rounds, running, standings = 0, tuple(names), ()
    for _ in range(BATCHES):
        batch = yield running
        for name, why in batch.wrong.items():
            out[name] = Standing(name, "wrong", why=why)
        running = tuple(name for name in running if name not in out)
        for regime, by_name in batch.times.items():
            for name in running:
                gathered[name].setdefault(regime, []).extend(by_name[name])
        if not batch.times:
            standings = tuple(Standing(name, "not told apart") for name in running)
            break
        rounds += BATCH
        standings = _standings({name: gathered[name] for name in running}, level)
        out |= {each.name: each for each in standings if each.place == "slower"}
        standings = tuple(each for each in standings if each.place != "slower")
        running = tuple(each.name for each in standings)
        if all(each.place in ("best", "equal") for each in standings):
            break
    behind = sorted(out.values(), key=lambda each: (each.place == "wrong", each.low))
    return Result((*(each for each in standings if each.name in running), *behind), rounds)


def _standings(times: Mapping[str, Mapping[str, Sequence[float]]], level: float) -> tuple[Standing, ...]:
    """times: by name and regime; a round's score is the geometric mean of its regimes."""
    scores = {
        name: [fmean(map(log, each)) for each in zip(*by_regime.values(), strict=True)]
        for name, by_regime in times.items()
    }
    order = sorted(scores, key=lambda name: median(scores[name]))
    found: list[Standing] = []
    for name in order:
        low, high = median_interval(
            [ours - best for ours, best in zip(scores[name], scores[order[0]], strict=True)], level
        )
        medians = {regime: median(each) for regime, each in times[name].items()}
        place = "best" if name == order[0] else _place(low, high)
        low, high = (0.0, 0.0) if place == "best" else (low, high)
        found.append(Standing(name, place, medians, exp(low), exp(high)))
    return tuple(found)


def _place(low: float, high: float) -> Place:
    if log(1 - EQUAL) <= low and high <= log(1 + EQUAL):
        return "equal"
    return "slower" if low > 0 else "not told apart"


def run_last_round(names: Sequence[str], measure: Callable[[tuple[str, ...]], Batch]) -> Result:
    """The result for these finalists. measure: times them in `BATCH` interleaved rounds."""
    going = compete(names)
    wanted = next(going)
    while True:
        try:
            wanted = going.send(measure(wanted))
        except StopIteration as done:
            return done.value
