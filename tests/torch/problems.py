"""A function in a compiled graph, on tensors of the CPU: proved kernels alone, and near float64."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

import argus.torch
from argus.torch.backend import argus_backend

made: Any = torch
"""Whose types are open in part."""


def drawn(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    made.manual_seed(7)
    return tuple(made.rand(shape) for shape in shapes)


def is_proved_and_right(function: Callable[..., Any], given: tuple[Any, ...]) -> None:
    """Right is within 1e-4 of float64, or within twice eager torch's own error."""
    made._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = made.compile(function, backend=argus_backend)(*given)
    entry = argus.torch.report()[-1]
    exact = function(*(each.double() for each in given))
    own = (function(*given).double() - exact).abs().max()
    assert entry.kernels
    assert not entry.eager, entry
    assert (found.double() - exact).abs().max() <= max(1e-4, 2 * own)
    assert found.dtype == function(*given).dtype
