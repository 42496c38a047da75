"""What happens in a search, as data: what its journal holds, and what a screen shows."""

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
    """A run begins. choices: how many designs there are. versions: of Argus and what judges with it.

    reward: what times are, for all of the run; None where an older version did not say.
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


@frozen
class Proposed:
    """A choice goes to the gate. planner: whose ranking it was; of a planner that falls back, the other's name."""

    name: str
    techniques: tuple[str, ...]
    utility: float
    planner: str
    why: str = ""


@frozen
class Judged:
    """The gate's answer to a choice."""

    judgement: Judgement


@frozen
class Asked:
    """A model was asked, for `cost` US dollars: its reply as data, to be read again when the run is resumed."""

    model: str
    reply: Mapping[str, Any]
    tokens: int
    cost: float


@frozen
class Resumed:
    """A run goes on after so many judgements. best: microseconds of the fastest of them, of these techniques.

    tokens, cost: that questions to a model took until then, in US dollars.
    """

    judged: int
    best: float | None = None
    techniques: tuple[str, ...] = ()
    tokens: int = 0
    cost: float = 0.0


@frozen
class Ended:
    reason: Reason


Event = Started | Proposed | Judged | Asked | Resumed | Ended


@frozen
class Asks:
    """A model is about to be asked, which may take long: for a screen alone, as nothing has come of it yet."""

    model: str


Update = Event | Asks
