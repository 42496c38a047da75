"""Converts arrays of other libraries on GPUs to torch tensors and back, by DLPack.

Nothing is copied: both sides are views of the same memory, and each library orders its streams as the protocol demands.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NoReturn, Protocol

from argus.core.diagnostic import ArgusError, Diagnostic

_GPUS = {2: "CUDA", 10: "ROCm", 13: "CUDA, managed"}
"""DLPack device types [dlpack.h, DLDeviceType] whose memory a kernel can read."""
_FOREIGN = (AttributeError, BufferError, RuntimeError, TypeError, ValueError, NotImplementedError)
"""Exceptions that libraries raise for arrays they cannot exchange."""


class Exchangeable(Protocol):
    """An array of any library that implements DLPack."""

    def __dlpack__(self, *, stream: Any = None) -> object: ...  # noqa: ANN401 reason: a library's number of a stream
    def __dlpack_device__(self) -> tuple[int, int]: ...


def is_foreign(value: object) -> bool:
    """Whether a value is an array of a library other than torch that implements DLPack."""
    return not hasattr(value, "data_ptr") and hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")


def to_torch(value: Any, name: str) -> Any:  # noqa: ANN401 reason: an array of any library
    """A torch tensor on the same memory. name: the operand's, for messages.

    Raises ArgusError (E401) without torch, for devices other than CUDA's and ROCm's, and for arrays that torch does not
    accept.
    """
    kind = int(value.__dlpack_device__()[0])
    if kind not in _GPUS:
        _refuse(f"`{name}` is on a device of type {kind} of DLPack, expected CUDA or ROCm", "move it to a GPU")
    try:
        torch: Any = import_module("torch")
    except ImportError:
        _refuse(f"`{name}` is an array of {_library(value)}, which passes through torch", "pip install torch")
    try:
        return torch.from_dlpack(value)
    except _FOREIGN as problem:
        _refuse(f"torch does not accept `{name}` of {_library(value)}: {problem}", "convert it to a bf16 torch tensor")


def from_torch(tensor: Any, like: Any) -> Any:  # noqa: ANN401 reason: arrays of any library
    """A torch tensor as an array of the library of `like`, on the same memory.

    Raises ArgusError (E401) where that library does not accept it.
    """
    problems: list[str] = []
    for take in _from_dlpack_functions(like):
        try:
            return take(tensor)
        except _FOREIGN as problem:
            problems.append(str(problem))
    reason = f": {problems[-1]}" if problems else ""
    _refuse(f"{_library(like)} does not accept a result by DLPack{reason}", "pass torch tensors")


def _from_dlpack_functions(like: Any) -> Iterator[Callable[[Any], Any]]:  # noqa: ANN401 reason: an array of any library
    """Functions named `from_dlpack`: from the array's own namespace, then from the usual places in its library."""
    namespace = getattr(like, "__array_namespace__", None)
    places: list[Any] = [] if namespace is None else [namespace()]
    library = sys.modules.get(_library(like))
    for path in ((), ("dlpack",), ("utils", "dlpack")):
        found: Any = library
        for part in path:
            found = getattr(found, part, None)
        places.append(found)
    for place in places:
        take = getattr(place, "from_dlpack", None)
        if callable(take):
            yield take


def _library(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _refuse(message: str, advice: str) -> NoReturn:
    raise ArgusError(Diagnostic("E401", "error", f"matmul: {message}", help=advice))
