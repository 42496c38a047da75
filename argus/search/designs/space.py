"""Builds the planner's situation of a problem: designs with names, techniques, knobs and feature vectors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import log2
from typing import assert_never

from attrs import frozen

from argus.core.cost.machine import MACHINES
from argus.kernels.gemm import Config
from argus.kernels.row_alignment import admits_rows
from argus.policy.bandit import CONSTANT
from argus.policy.planner import Choice, Situation, Step
from argus.search.designs.wave_quantisation import fits, occupancy_features
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.families.space import FamilyDesign, Knobs, knobs_of
from argus.search.problems.kernel_file import KernelFile, Variant
from argus.search.problems.problem import Gemm, Problem
from argus.search.techniques import TRANSFORMATIONS
from argus.search.tuning.candidates import design_space


@frozen
class DescribedDesign:
    """A design as planners see it. techniques: steps that lead to it. numbers: features by name."""

    name: str
    techniques: tuple[Step, ...]
    numbers: Mapping[str, float]
    knobs: Knobs


@lru_cache(maxsize=8)
def situation(problem: Problem, names: tuple[str, ...] = ()) -> Situation:
    """The initial situation of a problem. names: designs to choose among; by default all that admit its extents."""
    match problem:
        case Gemm():
            described = _family_designs(problem, names)
        case FamilyProblem():
            described = [_made_design(each) for each in problem.admissible() if not names or each.name in names]
        case KernelFile():
            described = [_file_design(each) for name, each in problem.variants.items() if not names or name in names]
        case _:
            assert_never(problem)
    # Features that are 0 for all designs carry no information.
    features = tuple(sorted({key for each in described for key, value in each.numbers.items() if value}))
    options = tuple(
        Choice(each.name, each.techniques, tuple(each.numbers.get(feature, 0.0) for feature in features), each.knobs)
        for each in described
    )
    bounds = problem.bounds
    first = problem.space.usual if isinstance(problem, FamilyProblem) else ""
    return Situation(problem.target, str(problem), features, bounds.light, bounds.bottleneck, options, first=first)


def _file_design(variant: Variant) -> DescribedDesign:
    """A kernel of a user's file: features are its base kernel and the techniques applied."""
    has = {technique_feature(step.technique): 1.0 for step in variant.steps}
    numbers = {CONSTANT: 1.0, f"kernel {variant.base}": 1.0, **has}
    done = "+".join(f"{step.technique} {step.change}".strip() for step in variant.steps)
    return DescribedDesign(variant.name, variant.steps, numbers, (("kernel", variant.base), ("rewritten", done)))


def _made_design(made: FamilyDesign) -> DescribedDesign:
    """A design of another family: features are its knobs, and how it fits the problem."""
    kind = {f"kind {made.knobs[0][1]}": 1.0}
    return DescribedDesign(made.name, (), {CONSTANT: 1.0, **kind, **_settings(made.knobs), **made.numbers}, made.knobs)


def _family_designs(problem: Gemm, names: tuple[str, ...]) -> list[DescribedDesign]:
    """Designs of the family, those with fewest techniques first.

    Without names, those are left out whose kernels assume other rows than the problem has, and whose tiles alone take
    more shared memory than there is.
    """
    configs = design_space(problem.target)
    machine = MACHINES[problem.target]
    chosen = names or tuple(
        name for name, each in configs.items() if admits_rows(each, problem.sizes) and fits(each, machine)
    )
    found = [describe(problem, name, configs.get(name) or problem.config(name)) for name in chosen]
    return sorted(found, key=lambda each: (len(each.techniques), each.name))


def describe(problem: Gemm, name: str, config: Config) -> DescribedDesign:
    knobs = knobs_of(config)
    steps = techniques_of(config)
    has = {technique_feature(step.technique): 1.0 for step in steps}
    kind = {f"kind {type(config).__name__}": 1.0}
    numbers = {CONSTANT: 1.0, **kind, **has, **_settings(knobs), **occupancy_features(problem, config)}
    return DescribedDesign(name, steps, numbers, knobs)


def technique_feature(name: str) -> str:
    """The name of the indicator feature of a technique."""
    return f"technique {name}"


def techniques_of(config: Config) -> tuple[Step, ...]:
    """The techniques that can be undone in a design, each with the fields that it changes."""
    found: list[Step] = []
    for name, each in TRANSFORMATIONS.items():
        without = each.undo(config)
        if without is not None:
            found.append(Step(name, _change(without, config)))
    return tuple(found)


def _change(before: Config, after: Config) -> str:
    """The fields in which two designs differ, as `field old -> new`."""
    old, new = dict(knobs_of(before)), dict(knobs_of(after))
    return ", ".join(f"{name} {old[name]} -> {new[name]}" for name in new if name in old and old[name] != new[name])


def _settings(knobs: Knobs) -> dict[str, float]:
    """Encode knobs as features: a bool as 0 or 1, a number as its logarithm and its square, a text as an indicator."""
    found: dict[str, float] = {}
    for name, value in knobs[1:]:
        match value:
            case bool():
                found[name] = float(value)
            case int():
                scaled = log2(1 + value) / 8
                found[name], found[f"{name} squared"] = scaled, scaled**2
            case str():
                found[f"{name} {value}"] = 1.0
    return found
