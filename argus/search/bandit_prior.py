"""Priors of the bandit's feature weights: from recorded problems, else from the knowledge base's effects."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2
from typing import assert_never

from argus.policy.bandit import CONSTANT, WeightPrior
from argus.policy.experience import load_experience
from argus.policy.knowledge import load_techniques
from argus.policy.nearest import beyond_features, load_recorded
from argus.search.designs.space import technique_feature
from argus.search.designs.wave_quantisation import problem_size
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.problem import Gemm, Problem

OCCUPANCY_PRIORS: Mapping[str, WeightPrior] = {
    CONSTANT: WeightPrior(-1.0, 0.5),
    "last wave": WeightPrior(1.0, 0.3),
    "edge": WeightPrior(1.0, 0.3),
    "products a byte": WeightPrior(1.0, 0.5),
}
"""Priors of features that are not techniques: idle SMs in the last wave and padding of edge tiles cost time."""


def feature_priors(problem: Problem) -> dict[str, WeightPrior]:
    """Priors by feature: fitted to recorded problems at this size where available, else the techniques' effects."""
    effects = {
        technique_feature(each.name): each.effect for each in load_techniques() if problem.target in each.targets
    }
    promised = {name: WeightPrior(each.log_mean, each.log_deviation) for name, each in effects.items()}
    return {**OCCUPANCY_PRIORS, **promised, **load_experience(_experience(problem)).at(_size(problem))}


def recorded_beyond_features(problem: Problem) -> dict[str, float]:
    """What recorded problems say of each design beyond its features; empty where none are recorded."""
    match problem:
        case Gemm(m, n, k):
            place: tuple[float, ...] = (log2(m), log2(n), log2(k))
        case FamilyProblem():
            place = problem.space.place
        case KernelFile():
            return {}
        case _:
            assert_never(problem)
    return beyond_features(load_recorded(_experience(problem)), place)


def _experience(problem: Problem) -> str:
    """The name of the file of fitted priors."""
    return problem.space.experience if isinstance(problem, FamilyProblem) else problem.target


def _size(problem: Problem) -> float | None:
    match problem:
        case Gemm():
            return problem_size(problem)
        case FamilyProblem():
            return problem.space.size
        case KernelFile():
            return None
        case _:
            assert_never(problem)
