"""The registered products: `matmul`, `scaled_matmul`, `grouped_matmul`, and their gradients."""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import torch
from torch import Tensor

from argus.ops.broadcast import shape_of
from argus.ops.grouped_gradient import summed_over_rows
from argus.ops.grouped_matmul import grouped_matmul as own_grouped
from argus.ops.matmul import matmul as own_matmul
from argus.ops.operands import check
from argus.ops.scaled_matmul import scaled_matmul as own_scaled
from argus.runtime.gpu.guards import Promises
from argus.runtime.launch_gate import Unproved
from argus.torch.library import Options, autocast, define, differentiable, not_differentiable, refuse_gradient

_CHOICE = 'str? config=None, str unproved="refuse"'
_CHECKS = 'str promises="stop", str unproved="refuse"'
OPERATORS: Any = torch.ops.argus
_MATRIX = 2


# -- matmul --------------------------------------------------------------------------------------------------


def _matmul_shape(a: Tensor, b: Tensor, **_options: object) -> Tensor:
    check(a, b)
    return a.new_empty(shape_of(a.shape, b.shape))


def _matmul_setup(context: Any, inputs: tuple[Tensor, ...], options: Options, _output: Tensor) -> None:
    context.save_for_backward(*inputs)
    context.unproved = options["unproved"]


def _matmul_backward(context: Any, given: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Two products: given @ b^T and a^T @ given; of a matrix that all products of a batch share, one over all rows."""
    a, b = context.saved_tensors
    of_a, of_b = context.needs_input_grad[:2]
    rows, columns = (a[None, :] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    given = given.unsqueeze(-1) if b.ndim == 1 else given
    given = given.unsqueeze(-2) if a.ndim == 1 else given
    first = second = None
    if of_a:
        first = _summed(OPERATORS.matmul(given, columns.mT, unproved=context.unproved), rows).reshape(a.shape)
    if of_b and columns.ndim == _MATRIX:
        all_rows = rows.expand(*given.shape[:-1], rows.shape[-1]).flatten(0, -2)
        second = OPERATORS.matmul(all_rows.mT, given.flatten(0, -2), unproved=context.unproved).reshape(b.shape)
    elif of_b:
        second = _summed(OPERATORS.matmul(rows.mT, given, unproved=context.unproved), columns)
    return first, second


def _summed(found: Tensor, like: Tensor) -> Tensor:
    return found if found.shape == like.shape else found.sum_to_size(like.shape)


define(f"matmul(Tensor a, Tensor b, *, {_CHOICE}) -> Tensor", unwrap(own_matmul), _matmul_shape)
differentiable("matmul", _matmul_setup, _matmul_backward)
autocast("matmul", (0, 1), single=False)


# -- scaled_matmul -------------------------------------------------------------------------------------------


def _scaled_shape(a: Tensor, b: Tensor, _scale_a: Tensor, _scale_b: Tensor, **_options: object) -> Tensor:
    return a.new_empty((a.shape[0], b.shape[1]), dtype=torch.bfloat16)


define(
    f"scaled_matmul(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, *, {_CHOICE}) -> Tensor",
    unwrap(own_scaled),
    _scaled_shape,
)
not_differentiable("scaled_matmul")


# -- grouped_matmul ------------------------------------------------------------------------------------------

_Given = Tensor | None


def _grouped(
    a: Tensor,
    b: Tensor,
    offsets: _Given = None,
    counts: _Given = None,
    scale_a: _Given = None,
    scale_b: _Given = None,
    **options: Any,
) -> Tensor:
    return unwrap(own_grouped)(a, b, offsets, counts=counts, scale_a=scale_a, scale_b=scale_b, **options)


def _grouped_shape(
    a: Tensor,
    b: Tensor,
    _offsets: _Given = None,
    _counts: _Given = None,
    scale_a: _Given = None,
    *_scale_b: _Given,
    **_options: object,
) -> Tensor:
    return a.new_empty((*a.shape[:-1], b.shape[2]), dtype=a.dtype if scale_a is None else torch.bfloat16)


def _grouped_setup(context: Any, inputs: tuple[Any, ...], options: Options, _output: Tensor) -> None:
    a, b, offsets, counts, scale_a, _ = inputs
    if counts is not None or scale_a is not None:
        refuse_gradient("grouped_matmul", "a product of counts, or with scales,")
    context.save_for_backward(a, b, offsets)
    context.options = options


def _grouped_backward(context: Any, given: Tensor) -> tuple[Tensor | None, ...]:
    a, b, offsets = context.saved_tensors
    of_a, of_b = context.needs_input_grad[:2]
    checks = {name: context.options[name] for name in ("promises", "unproved")}
    first = OPERATORS.grouped_matmul(given, b.mT, offsets, **context.options) if of_a else None
    second = None
    if of_b and b.stride(-1) != 1 and b.stride(-2) == 1:  # as `b` lies in memory
        second = OPERATORS.grouped_row_sums(given, a, offsets, **checks).mT
    elif of_b:
        second = OPERATORS.grouped_row_sums(a, given, offsets, **checks)
    return first, second, None, None, None, None


def _row_sums(
    x: Tensor, g: Tensor, offsets: Tensor, *, promises: Promises = "stop", unproved: Unproved = "refuse"
) -> Tensor:
    return summed_over_rows(x, g, offsets, promises, unproved)


def _row_sums_shape(x: Tensor, g: Tensor, offsets: Tensor, **_options: object) -> Tensor:
    return x.new_empty((offsets.shape[0] - 1, x.shape[1], g.shape[1]))


define(
    "grouped_matmul(Tensor a, Tensor b, Tensor? offsets=None, Tensor? counts=None, Tensor? scale_a=None, "
    f"Tensor? scale_b=None, *, str? config=None, {_CHECKS}) -> Tensor",
    _grouped,
    _grouped_shape,
)
differentiable("grouped_matmul", _grouped_setup, _grouped_backward)
autocast("grouped_matmul", (0, 1), single=False)
define(f"grouped_row_sums(Tensor x, Tensor g, Tensor offsets, *, {_CHECKS}) -> Tensor", _row_sums, _row_sums_shape)
not_differentiable("grouped_row_sums")
REGISTERED = ("matmul", "scaled_matmul", "grouped_matmul", "grouped_row_sums")
