"""Layers of experts for few tokens, without an order of rows: which schedules there are, and what they are given."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from argus.kernels.moe_choices import CONFIGS, FAMILIES
from argus.kernels.schedules.grouped_gated import Activation
from argus.ops.call_path import Candidate, Plan, Traced
from argus.ops.element_types import element_name
from argus.ops.operands import Tensor, copy_aligned
from argus.runtime.gpu.guards import Promises

CHOICES: Mapping[str, int] = {name: each.longest for name, each in CONFIGS.items()}
"""The schedules, with the most columns between the products."""
ATOMIC = frozenset(name for name, each in CONFIGS.items() if each.atomic)
"""Those that add a token's choices in any order."""
_IDS = "torch.int32"


def fitting(columns: int) -> str | None:
    """The schedule of the shortest rows that holds so many columns between the products, and adds in order."""
    return next((name for name, longest in CHOICES.items() if columns <= longest and name not in ATOMIC), None)


def for_few(tokens: int, choices: int, experts: int, columns: int) -> str | None:
    """The schedule where most experts have one choice at most; None for more choices, or for too many columns.

    An expert of several choices is read for each of them, which up to three choices of eight experts cost less than an
    order of rows does.
    """
    return fitting(columns) if 8 * tokens * choices <= 3 * experts else None


def plan_of(
    operands: tuple[Tensor, Tensor, Tensor], choices: int, activation: Activation, config: str, promises: Promises
) -> Plan:
    """The launches of a layer for x, w_gate_up and w_down, of so many choices of each token."""
    x, both, _ = operands
    (tokens, depth), (experts, rows, _) = x.shape, both.shape
    sizes = {"T": tokens, "K": depth, "E": experts, "N": rows // 2, "J": choices}
    name = element_name(x.dtype)
    traced = partial(_traced, name, activation, config)
    candidate = Candidate(f"moe_choices_{activation}_{name}", config, traced)
    return Plan((((tokens, depth), x.dtype),), tuple(sizes.items()), (candidate,), _named, promises=promises)


def integers_of(ids: Any) -> Any:  # noqa: ANN401 reason: torch's
    """Numbers of experts in 32 bits, row-major."""
    return copy_aligned(ids if str(ids.dtype) == _IDS else ids.int())


def _named(*operands: Any) -> Mapping[str, Any]:  # noqa: ANN401 reason: torch's
    x, both, down, weights = map(copy_aligned, operands[:4])
    experts, rows, depth = both.shape
    made = (x, both.view(experts, 2, rows // 2, depth), down, weights, *operands[4:])
    return dict(zip(("X", "W", "V", "weights", "ids", "Y"), made, strict=True))


def _traced(dtype: str, activation: Activation, config: str) -> Traced:
    template = FAMILIES[dtype, activation]
    return template.trace(config), template.function.__module__
