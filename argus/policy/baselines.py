"""Baseline planners that do not learn: random and exhaustive search."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from argus.policy.planner import Observation, RankedChoice, Situation, State, rank


@frozen
class Random:
    """Proposes open choices in uniformly random order."""

    name: str = "random"

    def start(self, situation: Situation, seed: int) -> State[None]:
        return State(seed, situation, None)

    def propose(self, state: State[None]) -> tuple[RankedChoice, ...]:
        options = state.open()
        return rank(options, state.generator().random(len(options)))

    def learn(self, state: State[None], observation: Observation) -> State[None]:
        return state.with_observation(observation, None)


@frozen
class Exhaustive:
    """Proposes choices in the order of the search space."""

    name: str = "exhaustive"

    def start(self, situation: Situation, seed: int) -> State[None]:
        return State(seed, situation, None)

    def propose(self, state: State[None]) -> tuple[RankedChoice, ...]:
        options = state.open()
        return rank(options, -np.arange(len(options), dtype=np.float64))

    def learn(self, state: State[None], observation: Observation) -> State[None]:
        return state.with_observation(observation, None)
