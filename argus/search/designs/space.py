"""The designs of a problem, as planners see them: names, techniques that they have, numbers that describe them."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2
from typing import Any, assert_never, cast

import attrs
from attrs import frozen

from argus.kernels.gemm import Config
from argus.policy.bandit import CONSTANT
from argus.policy.planner import Choice, Situation, Step
from argus.search.designs.wave_quantisation import occupancy_features
from argus.search.problems.kernel_file import KernelFile, Variant
from argus.search.problems.problem import Gemm, Problem
from argus.search.techniques import TRANSFORMATIONS
from argus.search.tuning.candidates import design_space


@frozen
class DescribedDesign:
    """A design. techniques: that it has, those of wider scope first. numbers: features by name."""

    name: str
    techniques: tuple[Step, ...]
    numbers: Mapping[str, float]
    knobs: tuple[tuple[str, int | bool | str], ...]


def situation(problem: Problem, names: tuple[str, ...] = ()) -> Situation:
    """What planners see of a problem before anything is tried. names: of designs to choose among; all by default."""
    match problem:
        case Gemm():
            described = _family_designs(problem, names)
        case KernelFile():
            described = [_file_design(each) for name, each in problem.variants.items() if not names or name in names]
        case _:
            assert_never(problem)
    # A number that is 0 of all says nothing of any.
    features = tuple(sorted({key for each in described for key, value in each.numbers.items() if value}))
    options = tuple(
        Choice(each.name, each.techniques, tuple(each.numbers.get(feature, 0.0) for feature in features), each.knobs)
        for each in described
    )
    bounds = problem.bounds
    return Situation(problem.target, str(problem), features, bounds.light, bounds.bottleneck, options)


def _file_design(variant: Variant) -> DescribedDesign:
    """What is known of a kernel of a user's file: which of them it is, and what was done to it."""
    has = {technique_feature(step.technique): 1.0 for step in variant.steps}
    numbers = {CONSTANT: 1.0, f"kernel {variant.base}": 1.0, **has}
    done = "+".join(f"{step.technique} {step.change}".strip() for step in variant.steps)
    return DescribedDesign(variant.name, variant.steps, numbers, (("kernel", variant.base), ("rewritten", done)))


def _family_designs(problem: Gemm, names: tuple[str, ...]) -> list[DescribedDesign]:
    """Those of fewest techniques first, as a person would try them."""
    configs = design_space(problem.target)
    chosen = names or tuple(configs)
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
    """The feature that says that a design has a technique."""
    return f"technique {name}"


def techniques_of(config: Config) -> tuple[Step, ...]:
    """The techniques that may be taken away from a design, each with the settings that it changes."""
    found: list[Step] = []
    for name, each in TRANSFORMATIONS.items():
        without = each.undo(config)
        if without is not None:
            found.append(Step(name, _change(without, config)))
    return tuple(found)


def _change(before: Config, after: Config) -> str:
    """The settings in which two designs differ."""
    old, new = dict(knobs_of(before)), dict(knobs_of(after))
    return ", ".join(f"{name} {old[name]} -> {new[name]}" for name in new if name in old and old[name] != new[name])


def knobs_of(config: Config) -> tuple[tuple[str, int | bool | str], ...]:
    """Each field of a configuration; tuples as text. The first is the kind of schedule."""
    kind = cast("type[Any]", type(config))
    fields = [(each.name, getattr(config, each.name)) for each in attrs.fields(kind)]
    return (
        ("kind", kind.__name__),
        *((name, _plain(value)) for name, value in fields),
    )


def _plain(value: object) -> int | bool | str:
    return value if isinstance(value, int) else str(value).strip("(),").replace(", ", "x")


def _settings(knobs: tuple[tuple[str, int | bool | str], ...]) -> dict[str, float]:
    """A truth as 0 or 1; a number as its logarithm and the square of that; a text as itself."""
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


def knob_values(options: tuple[Choice, ...]) -> Mapping[str, tuple[int | bool | str, ...]]:
    """The values that each knob takes among choices."""
    found: dict[str, dict[int | bool | str, None]] = {}
    for each in options:
        for name, value in each.knobs:
            found.setdefault(name, {})[value] = None
    return {name: tuple(values) for name, values in found.items()}
