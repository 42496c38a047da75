"""How public operators appear to torch's tracers: as the registered operators of `argus.torch`, imported on first use.

A call that nothing records runs the function itself: a registered operator costs several microseconds more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from sys import modules
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
_CALLS: dict[str, Callable[..., Any]] = {}
"""Public operators, by name, as calls of registered ones; filled once."""


def traceable(function: F) -> F:
    """A public operator that torch can record: its compiler, exports, autocast, modes such as fake tensors'."""
    name = function.__name__

    @wraps(function)
    def call(*operands: Any, **options: Any) -> Any:  # noqa: ANN401 reason: as the function's
        return registered(name)(*operands, **options) if _is_recorded() else function(*operands, **options)

    return cast(F, call)


def registered(name: str) -> Callable[..., Any]:
    """A public operator as a call of the registered one, which autograd differentiates."""
    _load()
    return _CALLS[name]


def _load() -> bool:
    if not _CALLS:
        _CALLS.update(import_module("argus.torch.calls").CALLS)
    return True


# The compiler calls it while it traces, as it cannot trace an import by name [torch._dynamo.assume_constant_result,
# which sets this attribute; torch is not imported here].
setattr(_load, "_dynamo_marked_constant", True)  # noqa: B010 reason: functions have no such attribute


def _is_recorded() -> bool:
    try:
        used: Any = modules["torch"]
        inner = used._C
        recorded = used.compiler.is_compiling() or inner._is_any_autocast_enabled() or inner._len_torch_dispatch_stack()
    except (KeyError, AttributeError):  # no torch, and no tensors of it
        return False
    return bool(recorded)
