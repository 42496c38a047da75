"""The registered layers of experts: `route`, `expert_order`, `received_order`, `moe` and its gradient."""

from __future__ import annotations

from functools import partial
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor

from argus.kernels.schedules.grouped_gated import Activation
from argus.ops.constants import constant
from argus.ops.expert_order import expert_order as own_order
from argus.ops.grouped_tiles import count_of
from argus.ops.moe import moe as own_moe
from argus.ops.moe_gradient import Gradient, gradients_of
from argus.ops.received_order import received_order as own_received
from argus.ops.route import route as own_route
from argus.runtime.gpu.guards import Promises
from argus.runtime.launch_gate import Unproved
from argus.torch.library import Options, autocast, define, differentiable, not_differentiable, prepare, refuse_gradient

_OPERATORS: Any = torch.ops.argus
_Given = Tensor | None


# -- route ---------------------------------------------------------------------------------------------------


def _route(logits: Tensor, k: int, bias: _Given = None, **options: Any) -> tuple[Tensor, Tensor]:
    return unwrap(own_route)(logits, k, bias=bias, **options)


def _route_shape(
    logits: Tensor, k: int, _bias: _Given = None, *, scale: float = 1.0, **_options: object
) -> tuple[Tensor, Tensor]:
    prepare(partial(constant, "route"), logits.device, scale, 1, "float32")
    shape = (logits.shape[0], k)
    return logits.new_empty(shape, dtype=torch.float32), logits.new_empty(shape, dtype=torch.int32)


define(
    'route(Tensor logits, int k, Tensor? bias=None, *, str scoring="softmax", bool renormalize=False, '
    'float scale=1.0, str unproved="refuse") -> (Tensor, Tensor)',
    _route,
    _route_shape,
)
not_differentiable("route")


# -- orders --------------------------------------------------------------------------------------------------


def _order(topk_ids: Tensor, experts: int, height: int | None = None) -> list[Tensor]:
    _, *made = unwrap(own_order)(topk_ids, experts, height=height)
    return [each for each in made if each is not None]


def _order_shape(topk_ids: Tensor, experts: int, height: int | None = None) -> list[Tensor]:
    pairs = topk_ids.shape[0] * topk_ids.shape[1]
    return _lists(topk_ids, ((experts + 1,), (pairs,), (pairs,), tuple(topk_ids.shape)), pairs, experts, height)


def _lists(
    beside: Tensor, shapes: tuple[tuple[int, ...], ...], rows: int, experts: int, height: int | None
) -> list[Tensor]:
    tiles = count_of(rows, experts, height) if height else 0
    more = ((tiles + 1,), (tiles,)) if height else ()
    return [beside.new_empty(shape, dtype=torch.int32) for shape in (*shapes, *more)]


def _received(counts: Tensor, rows: int, height: int | None = None) -> list[Tensor]:
    return [each for each in unwrap(own_received)(counts, rows, height=height) if each is not None]


def _received_shape(counts: Tensor, rows: int, height: int | None = None) -> list[Tensor]:
    experts = counts.shape[1]
    return _lists(counts, ((experts + 1,), (rows,), (rows,)), rows, experts, height)


define("expert_order(Tensor topk_ids, int experts, int? height=None) -> Tensor[]", _order, _order_shape)
define("received_order(Tensor counts, SymInt rows, int? height=None) -> Tensor[]", _received, _received_shape)


# -- moe -----------------------------------------------------------------------------------------------------


def _moe(
    x: Tensor,
    w_gate_up: Tensor,
    w_down: Tensor,
    topk_ids: Tensor,
    topk_weights: Tensor,
    scale_x: _Given = None,
    scale_gate_up: _Given = None,
    scale_down: _Given = None,
    **options: Any,
) -> Tensor:
    scales: Any = None if scale_x is None else (scale_x, scale_gate_up, scale_down)
    return unwrap(own_moe)(x, w_gate_up, w_down, topk_ids, topk_weights, scales=scales, **options)


def _moe_shape(x: Tensor, *more: _Given, **_options: object) -> Tensor:
    with_scales = len(more) > 4 and more[4] is not None
    return x.new_empty(x.shape, dtype=torch.bfloat16 if with_scales else x.dtype)


def _moe_setup(context: Any, inputs: tuple[Any, ...], options: Options, _output: Tensor) -> None:
    *operands, scale, _, _ = inputs
    if scale is not None:
        refuse_gradient("moe", "a layer with scales")
    context.save_for_backward(*operands)
    context.options = {name: options[name] for name in ("activation", "promises", "unproved")}


def _moe_backward(context: Any, given: Tensor) -> tuple[Tensor | None, ...]:
    needed = [context.needs_input_grad[place] for place in (0, 1, 2, 4)]
    found = _OPERATORS.moe_backward(*context.saved_tensors, given, needed, **context.options)
    of_x, of_both, of_down, of_weights = (each if need else None for each, need in zip(found, needed, strict=True))
    return of_x, of_both, of_down, None, of_weights, None, None, None


def _moe_gradients(
    *tensors: Any,
    activation: Activation = "silu",
    promises: Promises = "stop",
    unproved: Unproved = "refuse",
) -> tuple[Tensor, ...]:
    *operands, given, needed = tensors
    found = gradients_of(Gradient(own_moe, activation, promises, unproved), tuple(operands), given, needed)
    return tuple(operands[0].new_empty(0) if each is None else each for each in found)


def _moe_gradients_shape(*tensors: Any, **_options: object) -> tuple[Tensor, ...]:
    x, both, down, _, weights, _, needed = tensors
    pairs = zip((x, both, down, weights), needed, strict=True)
    return tuple(each.new_empty(each.shape) if need else x.new_empty(0) for each, need in pairs)


_LAYER = "Tensor x, Tensor w_gate_up, Tensor w_down, Tensor topk_ids, Tensor topk_weights"
_OPTIONS = 'str activation="silu", str? config=None, str promises="stop", str unproved="refuse"'
define(
    f"moe({_LAYER}, Tensor? scale_x=None, Tensor? scale_gate_up=None, Tensor? scale_down=None, "
    f"*, {_OPTIONS}) -> Tensor",
    _moe,
    _moe_shape,
)
differentiable("moe", _moe_setup, _moe_backward)
autocast("moe", (0, 1, 2), single=False)
define(
    f"moe_backward({_LAYER}, Tensor given, bool[] needed, *, "
    'str activation="silu", str promises="stop", str unproved="refuse") -> (Tensor, Tensor, Tensor, Tensor)',
    _moe_gradients,
    _moe_gradients_shape,
)
not_differentiable("moe_backward")
REGISTERED = ("route", "expert_order", "received_order", "moe", "moe_backward")
