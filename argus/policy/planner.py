"""Planner protocol: pure functions from a state to ranked choices, and from state and observation to the next state.

A planner's random numbers depend only on its seed and the number of observations and pending choices. A state is
therefore a function of its observations, and a search resumed from its journal continues as the uninterrupted one.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
from attrs import evolve, field, frozen

Outcome = Literal["timed", "ill-formed", "refuted", "unknown", "over limits", "not compiled", "wrong", "lost", "cheat"]
"""Result of the gate. timed: passed. lost: the worker process hung or died. cheat: faster than the hardware allows."""


@frozen
class Step:
    """One applied technique. change: the fields that it changed, such as `stages 1 -> 4`."""

    technique: str
    change: str

    def __str__(self) -> str:
        return f"{self.technique} ({self.change})" if self.change else self.technique


@frozen
class Choice:
    """A design to try. steps: techniques applied to the first design, in order.

    features: values of the situation's features; empty for a written kernel, of which no model predicts anything.
    knobs: the design's parameters by name. text: source of a written kernel; empty for a design of a family. repairs:
    name of the refused kernel that this one repairs.
    """

    name: str
    steps: tuple[Step, ...]
    features: tuple[float, ...]
    knobs: tuple[tuple[str, int | bool | str], ...] = ()
    text: str = ""
    repairs: str = ""


@frozen
class Observation:
    """Result of a trial. microseconds: time of one call, measured or predicted; None if the gate rejected it.

    stage: the last stage of the gate that it entered; empty if unknown. why: reason of a rejection.
    """

    choice: Choice
    outcome: Outcome
    microseconds: float | None = None
    stage: str = ""
    why: str = ""

    @property
    def passed(self) -> bool:
        return self.microseconds is not None


@frozen
class Situation:
    """Context that every planner gets.

    target, problem: as the user named them. features: names of a choice's features. bound: speed of light in
    microseconds. bottleneck: the resource that sets it. options: choices not tried yet. tried: observations in order.
    first: name of the choice that is used without a search, if there is one. earlier: observations of other runs of
    the same problem.
    """

    target: str
    problem: str
    features: tuple[str, ...]
    bound: float
    bottleneck: str
    options: tuple[Choice, ...]
    tried: tuple[Observation, ...] = ()
    first: str = ""
    earlier: tuple[Observation, ...] = ()

    @property
    def best(self) -> Observation | None:
        """The fastest observation so far; the first of equals."""
        passed = [each for each in self.tried if each.microseconds is not None]
        return min(passed, key=lambda each: each.microseconds or 0.0, default=None)

    @property
    def gap(self) -> float | None:
        """Best time over the bound; None before any candidate passed."""
        best = self.best
        return None if best is None or best.microseconds is None else best.microseconds / self.bound

    @property
    def counted(self) -> tuple[Observation, ...]:
        """The observations that count as candidates: all but refused kernels that have been repaired since."""
        repaired = {each.repairs for each in (*self.options, *(seen.choice for seen in self.tried))}
        return tuple(each for each in self.tried if each.choice.name not in repaired)

    def with_observation(self, observation: Observation) -> Situation:
        left = tuple(each for each in self.options if each.name != observation.choice.name)
        return evolve(self, options=left, tried=(*self.tried, observation))


Memory = TypeVar("Memory")


@frozen
class State(Generic[Memory]):
    """State of a planner. memory: what it has learnt. pending: names of choices being evaluated, not proposed again."""

    seed: int
    situation: Situation
    memory: Memory
    pending: frozenset[str] = frozenset()

    @property
    def step(self) -> int:
        return len(self.situation.tried)

    def generator(self) -> np.random.Generator:
        """Random generator of this step."""
        return np.random.default_rng([self.seed, self.step, len(self.pending)])

    def open(self) -> tuple[Choice, ...]:
        """Choices neither tried nor pending."""
        return tuple(each for each in self.situation.options if each.name not in self.pending)

    def with_pending(self, name: str) -> State[Memory]:
        return evolve(self, pending=self.pending | {name})

    def with_observation(self, observation: Observation, memory: Memory) -> State[Memory]:
        name = observation.choice.name
        situation = self.situation.with_observation(observation)
        return evolve(self, situation=situation, memory=memory, pending=self.pending - {name})


@frozen
class RankedChoice:
    """A choice and its utility, comparable only within one proposal. why: the reason, shown to the user."""

    choice: Choice
    utility: float
    why: str = field(default="")


class Planner(Protocol):
    """Ranks the next choices. Methods have no side effects and are deterministic in their arguments."""

    @property
    def name(self) -> str: ...

    def start(self, situation: Situation, seed: int) -> State[Any]:
        """The initial state."""
        ...

    def propose(self, state: State[Any]) -> tuple[RankedChoice, ...]:
        """Choices of `state.open()`, best first; empty if none is open."""
        ...

    def learn(self, state: State[Any], observation: Observation) -> State[Any]:
        """The state after one more observation."""
        ...


def rank(choices: tuple[Choice, ...], utilities: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[RankedChoice, ...]:
    """Choices by descending utility; stable."""
    order = np.argsort(-utilities, kind="stable")
    return tuple(RankedChoice(choices[int(place)], float(utilities[place])) for place in order)
