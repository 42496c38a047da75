"""The registered dropout: one operator draws random numbers, by a state of the generator, and one applies them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from argus.ops.constants import factor
from argus.ops.dropout import draw, dropped
from argus.torch.library import Options, define, differentiable, prepare

_OPERATORS: Any = torch.ops.argus


def _draw_shape(_state: Tensor, _elements: int, _p: float) -> None:
    """It writes into its operand."""


def _shape(x: Tensor, _state: Tensor, p: float, **_options: object) -> Tensor:
    if type(p) is float and 0 < p < 1:
        prepare(partial(factor, "dropout"), x.device, float(np.float32(1) / np.float32(1 - p)))
    return x.new_empty(x.shape)


def _setup(context: Any, inputs: tuple[Any, ...], options: Options, _output: Tensor) -> None:
    _, state, context.p = inputs
    context.save_for_backward(state)
    context.unproved = options["unproved"]


def _backward(context: Any, given: Tensor) -> tuple[Tensor, None, None]:
    (state,) = context.saved_tensors
    return _OPERATORS.dropout(given, state, context.p, unproved=context.unproved), None, None


# The state is written, not returned: torch's compiler takes equal calls without writes to be one.
define("dropout_draw(Tensor(a!) state, SymInt elements, float p) -> ()", draw, _draw_shape)
define('dropout(Tensor x, Tensor state, float p, *, str unproved="refuse") -> Tensor', dropped, _shape)
differentiable("dropout", _setup, _backward)
REGISTERED = ("dropout", "dropout_draw")
