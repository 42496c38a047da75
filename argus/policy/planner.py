"""What a planner is: a pure function from a state to ranked choices, and one from an observation to the next state.

All that a planner may draw at random comes from its seed and the number of observations so far, so that a state is what
its observations make of it: a search that is resumed from its journal goes on as it would have gone on.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
from attrs import evolve, field, frozen

Outcome = Literal["timed", "ill-formed", "refuted", "unknown", "over limits", "not compiled", "wrong", "lost", "cheat"]
"""How a candidate left the gate: `timed` it passed. lost: its process hung or died. cheat: faster than it can be."""
FAILURES: tuple[Outcome, ...] = ("ill-formed", "refuted", "unknown", "over limits", "not compiled", "wrong", "lost")


@frozen
class Step:
    """A technique as it was applied: `stages 1 -> 4`."""

    technique: str
    change: str

    def __str__(self) -> str:
        return f"{self.technique} ({self.change})" if self.change else self.technique


@frozen
class Choice:
    """A design that may be tried. steps: from the first design to it, in the order of a plan.

    features: one number for each of the situation's. knobs: what tells it from other designs, by name. text: of a
    kernel that somebody wrote, empty for a design of a family.
    """

    name: str
    steps: tuple[Step, ...]
    features: tuple[float, ...]
    knobs: tuple[tuple[str, int | bool | str], ...] = ()
    text: str = ""


@frozen
class Observation:
    """What became of a choice. microseconds: of one call, measured or predicted; None where the gate stopped it."""

    choice: Choice
    outcome: Outcome
    microseconds: float | None = None

    @property
    def passed(self) -> bool:
        return self.microseconds is not None


@frozen
class Situation:
    """What every planner sees.

    target, problem: as the user named them. features: names of the numbers of a choice. bound: the least microseconds
    that physics allows. bottleneck: what sets it. options: choices not tried yet. tried: in order.
    """

    target: str
    problem: str
    features: tuple[str, ...]
    bound: float
    bottleneck: str
    options: tuple[Choice, ...]
    tried: tuple[Observation, ...] = ()

    @property
    def best(self) -> Observation | None:
        """The fastest so far; of equals the first."""
        passed = [each for each in self.tried if each.microseconds is not None]
        return min(passed, key=lambda each: each.microseconds or 0.0, default=None)

    @property
    def gap(self) -> float | None:
        """Time of the best over the bound; None before anything passed."""
        best = self.best
        return None if best is None or best.microseconds is None else best.microseconds / self.bound

    def after(self, observation: Observation) -> Situation:
        left = tuple(each for each in self.options if each.name != observation.choice.name)
        return evolve(self, options=left, tried=(*self.tried, observation))


Memory = TypeVar("Memory")


@frozen
class State(Generic[Memory]):
    """memory: what this kind of planner has learnt. pending: names of choices under way, not to be repeated."""

    seed: int
    situation: Situation
    memory: Memory
    pending: frozenset[str] = frozenset()

    @property
    def step(self) -> int:
        return len(self.situation.tried)

    def generator(self) -> np.random.Generator:
        """Random numbers of this step alone."""
        return np.random.default_rng([self.seed, self.step, len(self.pending)])

    def open(self) -> tuple[Choice, ...]:
        """Choices neither tried nor under way."""
        return tuple(each for each in self.situation.options if each.name not in self.pending)

    def started(self, name: str) -> State[Memory]:
        return evolve(self, pending=self.pending | {name})

    def observed(self, observation: Observation, memory: Memory) -> State[Memory]:
        name = observation.choice.name
        return evolve(self, situation=self.situation.after(observation), memory=memory, pending=self.pending - {name})


@frozen
class Ranked:
    """A choice and how much a planner wants it: only the order within one proposal means anything. why: in words."""

    choice: Choice
    utility: float
    why: str = field(default="")


class Planner(Protocol):
    """Ranks what to try next. Neither method has effects; both give equal results for equal arguments."""

    @property
    def name(self) -> str: ...

    def start(self, situation: Situation, seed: int) -> State[Any]:
        """The state before anything was tried."""
        ...

    def propose(self, state: State[Any]) -> tuple[Ranked, ...]:
        """Choices of `state.open()`, the most wanted first; none if nothing is left."""
        ...

    def learn(self, state: State[Any], observation: Observation) -> State[Any]:
        """The state after one more observation."""
        ...


def ranked(choices: tuple[Choice, ...], utilities: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[Ranked, ...]:
    """By falling utility; of equals in their order."""
    order = np.argsort(-utilities, kind="stable")
    return tuple(Ranked(choices[int(place)], float(utilities[place])) for place in order)
