"""The policies that `benchmarks/arms.py` compares, and one search of each on a recorded problem."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import cache
from math import dist, log
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from argus.policy.bandit import CONFIDENT, EXPLOIT, Bandit, WeightPrior
from argus.policy.baselines import Random
from argus.policy.conditions import Case, learn_condition, validate_condition
from argus.policy.experience import RecordedProblem, fit_experience
from argus.policy.knowledge import load_techniques
from argus.policy.nearest import Beyond, beyond_features
from argus.policy.planner import Observation, Planner, RankedChoice, Situation, State, rank
from argus.policy.tpe import Tpe
from argus.search.bandit_prior import OCCUPANCY_PRIORS
from argus.search.designs.space import technique_feature
from benchmarks.conditions import FEWEST, features, recorded_cases
from benchmarks.recorded_problems import Recorded, common_ranks, recorded, teachers

NEAR, WARM = 1 / 0.95, 10
DEFAULT = "mean first"
CHOICES = ("bandit beyond", "mean first", "mean only", "nearest first")
"""Arms of which `leave one out` takes the one that is best on the other problems, each told of the rest."""
_SEEDS, _MOST = 3, 60
"""Searches of an other problem, and their trials at most."""


@frozen
class Fixed:
    """Proposes choices by known values, whatever it observes; those without one last, in the order of the space."""

    values: Mapping[str, float] = field(eq=False)
    name: str = "fixed"

    def start(self, situation: Situation, seed: int) -> State[None]:
        return Random().start(situation, seed)

    def propose(self, state: State[None]) -> tuple[RankedChoice, ...]:
        options = state.open()
        return rank(options, np.array([self.values.get(each.name, -np.inf) for each in options]))

    def learn(self, state: State[None], observation: Observation) -> State[None]:
        return Random().learn(state, observation)


@frozen
class First:
    """The first trials by known values, then another policy, which has learnt from them."""

    values: Mapping[str, float] = field(eq=False)
    trials: int
    then: Bandit = field(eq=False)
    name: str = "first"

    def start(self, situation: Situation, seed: int) -> State[Any]:
        return self.then.start(situation, seed)

    def propose(self, state: State[Any]) -> tuple[RankedChoice, ...]:
        options = tuple(each for each in state.open() if each.name in self.values)
        if state.step >= self.trials or not options:
            return self.then.propose(state)
        return rank(options, np.array([self.values[each.name] for each in options]))

    def learn(self, state: State[Any], observation: Observation) -> State[Any]:
        return self.then.learn(state, observation)


@cache
def beyond(family: str, number: int) -> Beyond:
    return recorded(family)[number].beyond


@cache
def default(family: str, number: int, others: tuple[int, ...]) -> Bandit:
    """The default of a search, told of these other problems."""
    every = recorded(family)
    asked = every[number]
    priors = fit_experience([lesson(family, each) for each in others]).at(asked.size)
    weights = {**OCCUPANCY_PRIORS, **priors} if "." in family else priors
    known = beyond_features([beyond(family, each) for each in others], asked.place)
    return Bandit(weights, recorded=known, trust=CONFIDENT, exploit=EXPLOIT)


@cache
def lesson(family: str, number: int) -> RecordedProblem:
    return recorded(family)[number].lesson


def policy(family: str, number: int, arm: str, others: tuple[int, ...]) -> Planner:
    """others: numbers of the problems that it is told of."""
    every = recorded(family)
    asked, bandit = every[number], default(family, number, others)
    near = sorted((every[each] for each in others), key=lambda each: dist(each.place, asked.place))
    match arm:
        case "random":
            return Random()
        case "no prior":
            return Bandit({})
        case "tpe" | "tpe warm":
            return Tpe()
        case "nearest copied":
            return Fixed(_order(near[0]))
        case "prior only":
            weights = bandit.weights
            means = np.array([weights[name].mean if name in weights else 0.0 for name in asked.before.features])
            return Fixed({each.name: float(np.dot(each.features, means)) for each in asked.before.options})
        case "bandit":
            return Bandit(bandit.weights)
        case "bandit beyond":
            return evolve(bandit, exploit=0)
        case "mean first":
            return bandit
        case "mean only":
            return evolve(bandit, trust=0.0)
        case "nearest first":
            return First(_order(near[0]), round(4 * _agreement(near[:3])), bandit)
        case "conditions":
            return evolve(bandit, weights=_with_conditions(bandit.weights, family, asked, near))
        case "leave one out":
            return policy(family, number, _best_elsewhere(family, others), others)
        case _:
            raise ValueError(arm)


def _with_conditions(
    weights: Mapping[str, WeightPrior], family: str, asked: Recorded, others: Sequence[Recorded]
) -> dict[str, WeightPrior]:
    """Priors of techniques moved by half their mean effect, up where their condition says that they gain.

    Conditions are learnt from the others alone, and taken where these confirm them.
    """
    found, known = dict(weights), {each.name for each in others}
    for technique in load_techniques() if "." not in family else ():
        feature = technique_feature(technique.name)
        if family not in technique.targets or feature not in found:
            continue
        learnt = [each for each in recorded_cases(family, technique.name) if each.shape in known]
        if len(learnt) < FEWEST or not validate_condition(learnt).confirmed:
            continue
        here = Case(asked.name, features(asked.name), 1.0)
        moved = 0.5 * statistics.mean(abs(log(each.ratio)) for each in learnt)
        gains = learn_condition(learnt).learnt.gains(here)
        found[feature] = evolve(found[feature], mean=found[feature].mean + (moved if gains else -moved))
    return found


def _order(problem: Recorded) -> dict[str, float]:
    return {name: -took for name, took in problem.times.items() if took is not None}


def _agreement(near: Sequence[Recorded]) -> float:
    """Mean rank correlation of the nearest problem's designs with each of the others; 0 without common designs."""
    found = [each for other in near[1:] if (each := common_ranks(near[0], other)) is not None]
    return max(0.0, statistics.mean(found)) if found else 0.0


@cache
def _best_elsewhere(family: str, others: tuple[int, ...]) -> str:
    """The arm that needs the fewest trials on the others, each searched with what the rest say."""
    took: dict[str, list[float]] = {arm: [] for arm in CHOICES}
    for each in others:
        rest = tuple(other for other in teachers(family, each) if other in others)
        for arm in CHOICES if rest else ():
            made = policy(family, each, arm, rest)
            found = [trials_of(recorded(family)[each], [(made, _MOST)], 1000 + seed) for seed in range(_SEEDS)]
            took[arm].append(statistics.geometric_mean([_MOST + 1 if each is None else each for each in found]))
    return min(took, key=lambda arm: statistics.geometric_mean(took[arm]) if took[arm] else 0.0)


@cache
def planner(family: str, number: int, arm: str) -> Planner:
    return policy(family, number, arm, teachers(family, number))


def trials_of(asked: Recorded, policies: Sequence[tuple[Planner, int]], seed: int) -> int | None:
    """The number of the first trial within 5 % of the best known time; None if there is none within the limits.

    policies: in turn, each until so many trials are done. Options come in an order of the seed, so that none is found
    for its place.
    """
    options, tried = asked.before.options, list[Observation]()
    order = np.random.default_rng([seed, len(options)]).permutation(len(options))
    before = evolve(asked.before, options=tuple(options[int(each)] for each in order))
    for policy, limit in policies:
        state = policy.start(before, seed)
        for each in tried:
            state = policy.learn(state, each)
        while len(tried) < limit:
            ranked = policy.propose(state)
            if not ranked:
                return None
            choice = ranked[0].choice
            took = asked.times[choice.name]
            if took is not None and took <= NEAR * asked.best:
                return len(tried) + 1
            tried.append(Observation(choice, "refuted" if took is None else "timed", took))
            state = policy.learn(state, tried[-1])
    return None
