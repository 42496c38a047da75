"""The registered operators along rows: softmax, norms, sums, cumulative sums, cross entropy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor

from argus.ops import rows
from argus.ops.constants import constant
from argus.torch.library import autocast, define, not_differentiable, prepare

_CHOICE = 'str unproved="refuse"'
_WEIGHTED = f"Tensor? weight=None, *, float eps=1e-5, {_CHOICE}"
_BIASED = f"Tensor? weight=None, Tensor? bias=None, *, float eps=1e-5, {_CHOICE}"


def _like(x: Tensor, **_options: object) -> Tensor:
    return x.new_empty(x.shape)


def _each_row(x: Tensor, **_options: object) -> Tensor:
    return x.new_empty(x.shape[:-1])


def _losses(x: Tensor, _target: Tensor, **_options: object) -> Tensor:
    return x.new_empty(x.shape[:-1], dtype=torch.float32)


def _prepared(
    name: str, x: Tensor, values: tuple[float, ...], given: tuple[object, ...], axis: int, eps: float
) -> None:
    """Make what the norm keeps: its epsilon, and weights that are not given."""
    prepare(partial(constant, name), x.device, float(eps), 1, "float32")
    for value, each in zip(values, given, strict=True):
        if each is None:
            prepare(partial(constant, name), x.device, value, x.shape[axis], str(x.dtype).removeprefix("torch."))


def _rms(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-5, **_options: object) -> Tensor:
    _prepared("rms_norm", x, (1.0,), (weight,), -1, eps)
    return x.new_empty(x.shape)


def _layer(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5, **_options: object
) -> Tensor:
    _prepared("layer_norm", x, (1.0, 0.0), (weight, bias), -1, eps)
    return x.new_empty(x.shape)


def _groups(
    x: Tensor,
    _groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    eps: float = 1e-5,
    **_options: object,
) -> Tensor:
    _prepared("group_norm", x, (1.0, 0.0), (weight, bias), 1, eps)
    return x.new_empty(x.shape)


def _of_sum(norm: Callable[..., Any]) -> Callable[..., Any]:
    """The norm of a sum, and the sum: a residual is its second operand."""

    def run(x: Tensor, residual: Tensor, *weights: Tensor | None, **options: Any) -> tuple[Tensor, Tensor]:
        return norm(x, *weights, residual=residual, **options)

    return run


def _both(shape: Callable[..., Tensor]) -> Callable[..., Any]:
    def run(x: Tensor, residual: Tensor, *weights: Tensor | None, **options: Any) -> tuple[Tensor, Tensor]:
        return shape(x, *weights, **options), residual.new_empty(residual.shape)

    return run


def _define() -> None:
    for name, function, shape in (
        ("softmax", rows.softmax, _like),
        ("log_softmax", rows.log_softmax, _like),
        ("row_sum", rows.row_sum, _each_row),
        ("row_mean", rows.row_mean, _each_row),
        ("cumsum", rows.cumsum, _like),
    ):
        define(f"{name}(Tensor x, *, {_CHOICE}) -> Tensor", unwrap(function), shape)
    define(f"cross_entropy(Tensor x, Tensor target, *, {_CHOICE}) -> Tensor", unwrap(rows.cross_entropy), _losses)
    rms, layer = unwrap(rows.rms_norm), unwrap(rows.layer_norm)
    define(f"rms_norm(Tensor x, {_WEIGHTED}) -> Tensor", rms, _rms)
    define(f"layer_norm(Tensor x, {_BIASED}) -> Tensor", layer, _layer)
    two = "Tensor x, Tensor residual"
    define(f"rms_norm_of_sum({two}, {_WEIGHTED}) -> (Tensor, Tensor)", _of_sum(rms), _both(_rms))
    define(f"layer_norm_of_sum({two}, {_BIASED}) -> (Tensor, Tensor)", _of_sum(layer), _both(_layer))
    define(f"group_norm(Tensor x, int groups, {_BIASED}) -> Tensor", unwrap(rows.group_norm), _groups)


_define()
_SINGLE = {
    "softmax": (0,),
    "log_softmax": (0,),
    "row_sum": (0,),
    "cumsum": (0,),
    "cross_entropy": (0,),
    "rms_norm": (0, 1),
    "layer_norm": (0, 1, 2),
    "rms_norm_of_sum": (0, 1, 2),
    "layer_norm_of_sum": (0, 1, 2, 3),
    "group_norm": (0, 2, 3),
}
"""What autocast converts to fp32, as torch does of the same operators: a mean keeps its type."""
for _name, _operands in _SINGLE.items():
    autocast(_name, _operands, single=True)
not_differentiable("row_mean", *_SINGLE)
REGISTERED = (
    "softmax",
    "log_softmax",
    "row_sum",
    "row_mean",
    "cumsum",
    "cross_entropy",
    "rms_norm",
    "layer_norm",
    "rms_norm_of_sum",
    "layer_norm_of_sum",
    "group_norm",
)
