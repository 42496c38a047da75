"""The library `argus` of torch's operators, and how one is registered: schema, kernel, shapes, autograd, autocast."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportPrivateUsage]  # no public one

from argus.ops.call_path import refuser

Options = Mapping[str, Any]
"""Those of a call, by name."""
_TORCH: Any = torch.library
"""Whose types are open in part."""
LIBRARY = _TORCH.Library("argus", "DEF")
_DEVICES = ("cuda", "cpu")
_AUTOCAST = {"cuda": "AutocastCUDA", "cpu": "AutocastCPU"}
_INNER: Any = torch._C  # pyright: ignore[reportPrivateUsage]  # as `torch.library.register_autocast`, of fixed types
_NONE: Options = {}
_CAST = (torch.bfloat16, torch.float16, torch.float32)
"""The types that autocast converts."""


def define(schema: str, run: Callable[..., Any], shapes: Callable[..., Any]) -> None:
    """Register an operator. run: computes it on GPUs and CPUs. shapes: new tensors of the shapes of its results.

    A result shares no memory with an operand. What it has no gradient for is refused by `not_differentiable`.
    """
    name = LIBRARY.define(schema)
    for device in _DEVICES:
        LIBRARY.impl(name, run, device.upper())
    _TORCH.register_fake(f"argus::{name}", shapes, lib=LIBRARY)


def differentiable(name: str, setup: Callable[..., None], backward: Callable[..., Any]) -> None:
    """Register an operator's gradient. setup: of the context, operands, options by name, and results.

    backward: as `torch.library.register_autograd` takes it.
    """

    def setup_context(ctx: Any, inputs: Any, output: Any, keyword_only_inputs: Options = _NONE) -> None:
        setup(ctx, inputs, keyword_only_inputs, output)

    _TORCH.register_autograd(f"argus::{name}", backward, setup_context=setup_context, lib=LIBRARY)


def not_differentiable(*names: str) -> None:
    """Operands of these operators that require a gradient are refused when it is recorded, as of the public ones."""
    for name in names:

        def setup(*_given: object, of: str = name) -> None:
            refuse_gradient(of)

        differentiable(name, setup, setup)


def refuse_gradient(name: str, what: str = "it") -> None:
    """Raises ArgusError (E401). what: what lacks a gradient."""
    message = f"an operand requires a gradient, which {what} lacks"
    refuser(name)(message, "use `torch.no_grad()` or `.detach()`")


def autocast(name: str, operands: Collection[int], *, single: bool) -> None:
    """Convert operands, by their places, under autocast: to fp32, or to the type that autocast is set to."""
    overload = getattr(torch.ops.argus, name).default
    for device in _DEVICES:

        def run(*given: object, of: str = device, **options: object) -> object:
            dtype = torch.float32 if single else torch.get_autocast_dtype(of)
            cast = [_as(dtype, each) if place in operands else each for place, each in enumerate(given)]
            with _INNER._ExcludeDispatchKeyGuard(_EXCLUDED):
                return overload(*cast, **options)

        LIBRARY.impl(name, run, _AUTOCAST[device])


def _autocast_keys() -> Any:
    first, second = (_INNER.DispatchKeySet(getattr(_INNER.DispatchKey, key)) for key in _AUTOCAST.values())
    return first | second


_EXCLUDED = _autocast_keys()


def _as(dtype: torch.dtype, given: object) -> object:
    return given.to(dtype) if isinstance(given, torch.Tensor) and given.dtype in _CAST else given


def prepare(make: Callable[..., object], device: torch.device, *numbers: object) -> None:
    """Make a constant that an operator keeps on a GPU while its call is traced.

    When it runs, torch may be allocating from the memory of a graph, which is used again.
    """
    if device.type != "cuda" or not all(type(each) in (int, float, str) for each in numbers):
        return
    with _disable_current_modes():
        make(*numbers, torch.empty(0, device=device).device.index)
