"""Whether a compiled model is right: against float64, within 1e-4 or twice eager torch's own error."""

from __future__ import annotations

import copy
from typing import Any

import torch
from attrs import frozen

TOLERANCE = 1e-4


@frozen
class Comparison:
    """error, eager: the greatest error of the compiled and of the eager result, relative to 1 + the float64 value.

    stock: whether the result agrees with eager torch's to within 1e-4 absolutely and relatively. trivial: whether zeros
    or a constant would pass, too.
    """

    error: float
    eager: float
    stock: bool
    trivial: bool

    @property
    def right(self) -> bool:
        return self.error <= max(TOLERANCE, 2 * self.eager)


def compare(model: Any, compiled: Any, inputs: list[Any]) -> Comparison:  # noqa: ANN401 reason: modules of torch's
    """Run all three on equal inputs and copies of the model, whose buffers a run may change."""
    with torch.no_grad():
        exact = first(_double(copy.deepcopy(model))(*map(_double, inputs))).double()
        eager = first(copy.deepcopy(model)(*inputs))
        found = first(compiled(*inputs))
    return compared(found, eager, exact)


def compared(found: Any, eager: Any, exact: Any) -> Comparison:  # noqa: ANN401 reason: tensors
    if found.shape != eager.shape or found.dtype != eager.dtype:
        return Comparison(float("inf"), 0.0, stock=False, trivial=False)
    mean = exact.double().mean()
    near = [_error(torch.full_like(exact, value), exact) for value in (0.0, float(mean))]
    stock = bool(torch.allclose(found, eager, atol=TOLERANCE, rtol=TOLERANCE))
    return Comparison(_error(found, exact), _error(eager, exact), stock, min(near) <= TOLERANCE)


def _error(found: Any, exact: Any) -> float:  # noqa: ANN401 reason: tensors
    """The greatest error; infinite where one is a number and the other is not."""
    given, wanted = found.double(), exact.double()
    same = (given == wanted) | (given.isnan() & wanted.isnan())
    apart = torch.where(same, 0.0, (given - wanted).abs() / (1 + wanted.abs()))
    worst = float(apart.max()) if apart.numel() else 0.0
    return float("inf") if worst != worst else worst  # noqa: PLR0124 reason: NaN is not itself


def first(result: Any) -> Any:  # noqa: ANN401 reason: torch's
    """The result, or the first of several."""
    return result[0] if isinstance(result, tuple | list) else result  # pyright: ignore[reportUnknownVariableType]


def _double(each: Any) -> Any:  # noqa: ANN401 reason: a module, a tensor or a number
    if isinstance(each, torch.nn.Module) or (isinstance(each, torch.Tensor) and each.is_floating_point()):
        return each.double()
    return each
