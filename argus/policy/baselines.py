"""Planners that learn nothing: what a better one is measured against."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from argus.policy.planner import Observation, Ranked, Situation, State, ranked


@frozen
class Random:
    """Every open choice is as likely as any other."""

    name: str = "random"

    def start(self, situation: Situation, seed: int) -> State[None]:
        return State(seed, situation, None)

    def propose(self, state: State[None]) -> tuple[Ranked, ...]:
        options = state.open()
        return ranked(options, state.generator().random(len(options)))

    def learn(self, state: State[None], observation: Observation) -> State[None]:
        return state.observed(observation, None)


@frozen
class Exhaustive:
    """Choices in the order in which the space lists them."""

    name: str = "exhaustive"

    def start(self, situation: Situation, seed: int) -> State[None]:
        return State(seed, situation, None)

    def propose(self, state: State[None]) -> tuple[Ranked, ...]:
        options = state.open()
        return ranked(options, -np.arange(len(options), dtype=np.float64))

    def learn(self, state: State[None], observation: Observation) -> State[None]:
        return state.observed(observation, None)
