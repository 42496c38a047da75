"""The contextual bandit: Thompson sampling over linear models of how fast a design is and whether it passes the gate.

A choice's features speak of the design and of its context: target, extents, distance to the bound, bottleneck. The
weights have a normal posterior [Agrawal and Goyal 2013, section 2.1]; one draw of them ranks all choices at once, so
that what is uncertain is tried in proportion to the chance that it is best. The prior is what the knowledge base says
of each technique.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.policy.credit import earned
from argus.policy.planner import Choice, Observation, Ranked, Situation, State, ranked

Vector = npt.NDArray[np.float64]
_SAME = attrs.cmp_using(eq=np.array_equal)
CONSTANT = "1"
"""The name of the feature that is 1 of every choice."""


@frozen
class Weight:
    """What is believed of one feature's weight before anything was tried: logarithms of the share of the bound."""

    mean: float
    deviation: float


@frozen
class Belief:
    """A normal distribution of weights, by its precision and what its precision makes of its mean."""

    precision: Vector = field(eq=_SAME)
    shift: Vector = field(eq=_SAME)

    @classmethod
    def prior(cls, weights: tuple[Weight, ...]) -> Belief:
        inverse = np.array([each.deviation**-2 for each in weights])
        return cls(np.diag(inverse), inverse * np.array([each.mean for each in weights]))

    def updated(self, features: Vector, value: float, noise: float) -> Belief:
        return Belief(
            self.precision + np.outer(features, features) / noise**2, self.shift + features * value / noise**2
        )

    def mean(self) -> Vector:
        return np.asarray(np.linalg.solve(self.precision, self.shift), np.float64)

    def draw(self, generator: np.random.Generator) -> Vector:
        """One set of weights. The precision is L L^T, and L^-T of standard normals has its inverse as covariance."""
        lower = np.linalg.cholesky(self.precision)
        return self.mean() + np.linalg.solve(lower.T, generator.standard_normal(len(self.shift)))


@frozen
class Beliefs:
    """speed: of the logarithm of the share of the bound that a design reaches. passing: of 1 if it passes the gate."""

    speed: Belief
    passing: Belief


@frozen
class Bandit:
    """weights: of features by name, from the knowledge base; others are believed to be about 0.

    noise: of the logarithm of a time, what the model misses included. trust: how much of the posterior's width a draw
    uses. refusal: what a candidate that the gate stops costs, in logarithms of time. credit: what a technique's credit
    of 1 is worth.
    """

    weights: Mapping[str, Weight]
    name: str = "bandit"
    noise: float = 0.1
    trust: float = 0.5
    refusal: float = 1.0
    credit: float = 0.02
    unknown: Weight = Weight(0.0, 0.3)

    def start(self, situation: Situation, seed: int) -> State[Beliefs]:
        speed = tuple(self.weights.get(name, self.unknown) for name in situation.features)
        passing = tuple(Weight(1.0, 0.1) if name == CONSTANT else Weight(0.0, 0.2) for name in situation.features)
        return State(seed, situation, Beliefs(Belief.prior(speed), Belief.prior(passing)))

    def propose(self, state: State[Beliefs]) -> tuple[Ranked, ...]:
        options = state.open()
        if not options:
            return ()
        features = np.array([each.features for each in options])
        generator = state.generator()
        speed = features @ self._drawn(state.memory.speed, generator)
        refused = np.clip(1 - features @ self._drawn(state.memory.passing, generator), 0.0, 1.0)
        earned = self._earned(state, options)
        return ranked(options, speed - self.refusal * refused + self.credit * earned)

    def _drawn(self, belief: Belief, generator: np.random.Generator) -> Vector:
        mean = belief.mean()
        return mean + self.trust * (belief.draw(generator) - mean)

    def _earned(self, state: State[Beliefs], options: tuple[Choice, ...]) -> Vector:
        """The mean credit of the techniques of each choice."""
        known = earned(state.situation.tried)
        return np.array(
            [
                sum(known.get(step.technique, 1.0) for step in each.steps) / len(each.steps) if each.steps else 0.0
                for each in options
            ]
        )

    def learn(self, state: State[Beliefs], observation: Observation) -> State[Beliefs]:
        features: Vector = np.array(observation.choice.features)
        speed, passing = state.memory.speed, state.memory.passing
        if observation.microseconds is not None:
            speed = speed.updated(features, log(state.situation.bound / observation.microseconds), self.noise)
        passing = passing.updated(features, float(observation.passed), self.noise)
        return state.observed(observation, Beliefs(speed, passing))

    def expected(self, state: State[Any], choice: Choice) -> float:
        """Microseconds that the posterior's mean gives a choice."""
        return float(state.situation.bound / np.exp(np.array(choice.features) @ state.memory.speed.mean()))
