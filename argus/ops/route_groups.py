"""Which experts tokens may choose, where these are in groups and only those of the best groups may be chosen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from argus.kernels.routing_groups import KEPT, SCORES
from argus.language import Template
from argus.ops.call_path import Candidate, Plan, Traced, launch, torch
from argus.ops.row_calls import TYPES
from argus.ops.targets import kernels_for
from argus.runtime.launch_gate import Unproved

OPERATOR = "route among groups"


def experts_of_best_groups(
    x: Any,  # noqa: ANN401 reason: torch's
    biases: tuple[Any, ...],
    groups: int,
    top: int,
    unproved: Unproved,
) -> Any:  # noqa: ANN401 reason: as above
    """1 for the experts of each token's `top` groups with the largest scores, of equal ones the first; 0 for others.

    x: (tokens, experts), row-major. biases: none, or one tensor of (experts). A group's score is the largest of its
    experts', or with biases the sum of the two largest sums of a sigmoid and a bias. The result is (tokens, experts) in
    f32. Two launches.
    """
    tokens, experts = x.shape
    size, template = experts // groups, SCORES[TYPES[str(x.dtype)], bool(biases)]
    config = kernels_for(OPERATOR, x).choose(size)
    sizes, single = (("T", tokens), ("G", groups), ("D", size)), torch().float32
    of_scores, of_flags = ((tokens, groups), single), ((tokens, groups, size), single)
    score = Plan((of_scores,), sizes, (_candidate(template, config),), partial(_named, groups))
    keep = Plan((of_flags,), (*sizes, ("top", top)), (_candidate(KEPT, config),), _named_scores)
    scores, _ = launch(score, (x, *biases), unproved)
    kept, _ = launch(keep, (scores,), unproved)
    return kept.view(tokens, experts)


def _candidate(template: Template, config: str) -> Candidate:
    return Candidate(template.name, config, partial(_traced, template, config))


def _traced(template: Template, config: str) -> Traced:
    return template.trace(config), template.function.__module__


def _named(groups: int, *tensors: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's; a partial's
    *given, scores = tensors
    parts = [each.view(*each.shape[:-1], groups, each.shape[-1] // groups) for each in given]
    return {**dict(zip("XB", parts, strict=False)), "S": scores}


def _named_scores(scores: Any, kept: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's
    return {"S": scores, "M": kept}
