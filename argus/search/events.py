"""Events of a search: records of its journal, and updates for the display."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from attrs import evolve, field, frozen

from argus.policy.last_round import Standing
from argus.runtime.gpu.timing import SUSTAINED
from argus.search.evaluation.judgement import Judgement, Reward

Reason = Literal[
    "near the bound", "no gain", "trials spent", "time spent", "money spent", "nothing left", "interrupted"
]


@frozen
class Started:
    """A run starts. choices: number of designs. versions: of Argus and the packages that affect verdicts.

    reward: whether the run's times are measured or predicted; None in journals of older versions. earlier: runs of the
    same problem that it begins with, and how many of their events.
    """

    problem: str
    target: str
    planner: str
    seed: int
    bound: float
    bottleneck: str
    choices: int
    versions: Mapping[str, str] = field(factory=dict[str, str])
    reward: Reward | None = None
    earlier: tuple[tuple[str, int], ...] = ()


@frozen
class Proposed:
    """A choice is submitted to the gate. planner: the one that ranked it; after a fallback, the fallback's name."""

    name: str
    techniques: tuple[str, ...]
    utility: float
    planner: str
    why: str = ""


@frozen
class Judged:
    """The gate's judgement of a choice."""

    judgement: Judgement


@frozen
class Asked:
    """A model was asked. cost: US dollars. reply: as data, replayed when the run is resumed."""

    model: str
    reply: Mapping[str, Any]
    tokens: int
    cost: float


@frozen
class Resumed:
    """A run resumes after `judged` judgements. best, techniques: time in microseconds and techniques of the fastest.

    tokens, cost: spent on model questions so far; cost in US dollars.
    """

    judged: int
    best: float | None = None
    techniques: tuple[str, ...] = ()
    tokens: int = 0
    cost: float = 0.0


@frozen
class LastRound:
    """The best candidates are timed again together. missing: why they were not, empty if they were.

    standings: in order of time. rounds: number of interleaved rounds.
    """

    standings: tuple[Standing, ...]
    rounds: int = 0
    missing: str = ""

    @property
    def best(self) -> str:
        """Name of the best candidate; empty without one."""
        return next((each.name for each in self.standings if each.place == "best"), "")

    @property
    def times(self) -> dict[str, float]:
        """By name the median time of a call in microseconds: of calls back to back, as the gate times them."""
        regime = SUSTAINED.name
        return {each.name: each.medians[regime] for each in self.standings if regime in each.medians}

    @property
    def wrong(self) -> tuple[str, ...]:
        """Names of the candidates that failed a check."""
        return tuple(each.name for each in self.standings if each.place == "wrong")


@frozen
class Ended:
    """A run ends."""

    reason: Reason


Event = Started | Proposed | Judged | Asked | Resumed | LastRound | Ended


@frozen
class Asks:
    """A model is about to be asked, which may take long. For the display only; not recorded in the journal."""

    model: str
    task: str = "plan"


Update = Event | Asks


def best_of(events: Iterable[Event]) -> Judgement | None:
    """The best candidate of a run: of its last round, or a later one that is faster, else the fastest; first of equals.

    A candidate that failed a check in a last round is none. The time of one that a last round has measured is the
    median there; of others there is a single measurement.
    """
    events = tuple(events)
    best, times = _best_by_single_times(events), settled_times(events)
    return best if best is None else evolve(best, microseconds=times.get(best.name, best.microseconds))


def settled_times(events: Iterable[Event]) -> dict[str, float]:
    """Median times in microseconds of the candidates that last rounds have measured, of the latest one for each."""
    found: dict[str, float] = {}
    for event in events:
        if isinstance(event, LastRound):
            found |= event.times
    return found


def _best_by_single_times(events: Iterable[Event]) -> Judgement | None:
    best: Judgement | None = None
    passed: dict[str, Judgement] = {}
    for event in events:
        match event:
            case Judged(found) if found.microseconds is not None:
                passed[found.name] = found
                best = found if best is None or found.microseconds < (best.microseconds or 0.0) else best
            case LastRound() if not event.missing:
                passed = {name: each for name, each in passed.items() if name not in event.wrong}
                fastest = min(passed.values(), key=lambda each: each.microseconds or 0.0, default=None)
                best = passed.get(event.best, fastest)
            case _:
                pass
    return best
