"""Events of a search: records of its journal, and updates for the display."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

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
class Ended:
    """A run ends."""

    reason: Reason


Event = Started | Proposed | Judged | Asked | Resumed | Ended


@frozen
class Asks:
    """A model is about to be asked, which may take long. For the display only; not recorded in the journal."""

    model: str
    task: str = "plan"


Update = Event | Asks
