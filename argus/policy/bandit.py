"""Contextual bandit: Thompson sampling over two linear models, of a design's speed and of its passing the gate.

A choice's features describe the design and its context: target, extents, distance to the bound, bottleneck. The
weights have a normal posterior [Agrawal and Goyal 2013, section 2.1]. One sample of the weights ranks all choices, so
that a choice is tried with the probability that it is the best. The priors come from the effects that the knowledge
base states for each technique.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.policy.credit import technique_credit
from argus.policy.planner import Choice, Observation, RankedChoice, Situation, State, rank

Vector = npt.NDArray[np.float64]
_SAME = attrs.cmp_using(eq=np.array_equal)
CONFIDENT = 0.25
"""Trust of a bandit that knows recorded problems: it explores less."""
EXPLOIT = 2
"""Its first trials, which take the posterior mean: what is known of other problems is tried before its doubts are."""
CONSTANT = "1"
"""The name of the intercept: a feature that is 1 for every choice."""


@frozen
class WeightPrior:
    """Normal prior of one feature's weight. Unit: natural logarithm of bound over time."""

    mean: float
    deviation: float


@frozen
class Gaussian:
    """Normal distribution of the weights in information form: precision matrix, and shift = precision @ mean."""

    precision: Vector = field(eq=_SAME)
    shift: Vector = field(eq=_SAME)

    @classmethod
    def prior(cls, weights: tuple[WeightPrior, ...]) -> Gaussian:
        inverse = np.array([each.deviation**-2 for each in weights])
        return cls(np.diag(inverse), inverse * np.array([each.mean for each in weights]))

    def updated(self, features: Vector, value: float, noise: float) -> Gaussian:
        """The posterior after an observation value = features @ weights + N(0, noise^2)."""
        return Gaussian(
            self.precision + np.outer(features, features) / noise**2, self.shift + features * value / noise**2
        )

    def mean(self) -> Vector:
        return np.asarray(np.linalg.solve(self.precision, self.shift), np.float64)

    def sample(self, generator: np.random.Generator) -> Vector:
        """One sample. With precision L L^T, L^-T z for standard normal z has covariance precision^-1."""
        lower = np.linalg.cholesky(self.precision)
        return self.mean() + np.linalg.solve(lower.T, generator.standard_normal(len(self.shift)))


@frozen
class Posteriors:
    """Posteriors of both models. speed: predicts log(bound / time). passing: predicts 1 if the gate passes, else 0."""

    speed: Gaussian
    passing: Gaussian


@frozen
class Bandit:
    """Ranks choices by one sample of speed, minus a penalty for failing the gate, plus a credit for recent successes.

    weights: priors of features by name, from the knowledge base. unknown: the prior of every other feature.
    noise: standard deviation of log time, model error included. trust: factor on the posterior's standard deviation
    when sampling. refusal: penalty of a candidate that fails the gate, in log time. credit: bonus, in log time, for a
    technique credit of 1. recorded: by design, what recorded problems say of its
    log(bound / time) beyond what its features explain. exploit: how many of the first trials rank by the posterior
    mean instead of a sample.
    """

    weights: Mapping[str, WeightPrior]
    name: str = "bandit"
    noise: float = 0.1
    trust: float = 0.5
    refusal: float = 1.0
    credit: float = 0.02
    unknown: WeightPrior = WeightPrior(0.0, 0.3)
    recorded: Mapping[str, float] = field(factory=dict[str, float])
    exploit: int = 0

    def start(self, situation: Situation, seed: int) -> State[Posteriors]:
        speed = tuple(self.weights.get(name, self.unknown) for name in situation.features)
        passing = tuple(
            WeightPrior(1.0, 0.1) if name == CONSTANT else WeightPrior(0.0, 0.2) for name in situation.features
        )
        beliefs = Posteriors(Gaussian.prior(speed), Gaussian.prior(passing))
        for each in situation.earlier:
            beliefs = self._updated(beliefs, situation.bound, each)
        return State(seed, situation, beliefs)

    def _recorded(self, choices: tuple[Choice, ...]) -> Vector:
        """For each choice what recorded problems say of it beyond its features."""
        return np.array([self.recorded.get(each.name, 0.0) for each in choices])

    def propose(self, state: State[Posteriors]) -> tuple[RankedChoice, ...]:
        options = state.open()
        if not options:
            return ()
        features = np.array([each.features for each in options])
        generator = state.generator()
        trust = 0.0 if state.step + len(state.pending) < self.exploit else self.trust
        speed = features @ _sampled_weights(state.memory.speed, generator, trust)
        speed = speed + self._recorded(options)
        refused = np.clip(1 - features @ _sampled_weights(state.memory.passing, generator, trust), 0.0, 1.0)
        technique_credit = self._mean_credit(state, options)
        utilities = speed - self.refusal * refused + self.credit * technique_credit
        if not state.situation.tried:  # what is used without a search is tried first: all others have to beat it
            utilities[[each.name == state.situation.first for each in options]] = np.inf
        return rank(options, utilities)

    def _mean_credit(self, state: State[Posteriors], options: tuple[Choice, ...]) -> Vector:
        """For each choice the mean credit of its techniques."""
        known = technique_credit(state.situation.tried)
        return np.array(
            [
                sum(known.get(step.technique, 1.0) for step in each.steps) / len(each.steps) if each.steps else 0.0
                for each in options
            ]
        )

    def learn(self, state: State[Posteriors], observation: Observation) -> State[Posteriors]:
        return state.with_observation(observation, self._updated(state.memory, state.situation.bound, observation))

    def _updated(self, beliefs: Posteriors, bound: float, observation: Observation) -> Posteriors:
        features: Vector = np.array(observation.choice.features)
        speed, passing = beliefs.speed, beliefs.passing
        if observation.microseconds is not None:
            (beyond,) = self._recorded((observation.choice,))
            value = log(bound / observation.microseconds) - float(beyond)
            speed = speed.updated(features, value, self.noise)
        passing = passing.updated(features, float(observation.passed), self.noise)
        return Posteriors(speed, passing)

    def expected(self, state: State[Any], choice: Choice) -> float:
        """Predicted time of a choice in microseconds, at the posterior mean."""
        (beyond,) = self._recorded((choice,))
        predicted = np.array(choice.features) @ state.memory.speed.mean() + beyond
        return float(state.situation.bound / np.exp(predicted))


def _sampled_weights(belief: Gaussian, generator: np.random.Generator, trust: float) -> Vector:
    mean = belief.mean()
    return mean + trust * (belief.sample(generator) - mean)
