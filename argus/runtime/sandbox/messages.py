"""Messages between the caller, the process that runs the user's text, and the process that checks its kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from attrs import frozen
from cattrs.errors import ClassValidationError
from cattrs.preconf.json import make_converter

from argus.runtime.sandbox.request import CheckedKernel, Task
from argus.runtime.sandbox.user_reference import Exact

T = TypeVar("T")
_CONVERTER = make_converter(forbid_extra_keys=True)


@frozen
class TraceRequest:
    """Input of `trace_kernels`: the text to run. kernel: which of its kernels to trace; all if empty."""

    text: str
    file: str
    kernel: str
    seconds: float


@frozen
class Job:
    """Input of `check_kernels`, followed by the output of `trace_kernels`."""

    text: str
    file: str
    tasks: tuple[Task, ...]


@frozen
class SentDiagnostic:
    """A diagnostic, in the schema `argus.diagnostic/1` and as text."""

    diagnostic: Mapping[str, Any]
    text: str


@frozen
class Reply:
    """Output of `check_kernels`: the checked kernels, or the diagnostic if there are none."""

    kernels: tuple[CheckedKernel, ...] = ()
    refused: SentDiagnostic | None = None


@frozen
class Floats:
    """An array of float64."""

    shape: tuple[int, ...]
    data: bytes

    @staticmethod
    def of(values: Exact) -> Floats:
        return Floats(values.shape, np.ascontiguousarray(values).tobytes())

    @property
    def values(self) -> Exact:
        """The array. Raises ValueError for bytes that do not fit the shape."""
        if min(self.shape, default=0) < 0:
            raise ValueError("an extent is negative")
        return np.frombuffer(self.data, np.float64).reshape(self.shape)


@frozen
class ReferenceCalls:
    """Input of `run_reference`. given: the arguments of each call, by name. sizes: the arguments of `work`."""

    text: str
    file: str
    given: tuple[Mapping[str, Floats], ...]
    sizes: Mapping[str, int]
    seconds: float


@frozen
class ReferenceResults:
    """Output of `run_reference`. given: the results of each call by output, or under "" for a single array. work: the
    result of `work` as JSON. fault: why there are no results.
    """

    given: tuple[Mapping[str, Floats], ...] = ()
    work: str = ""
    fault: str = ""


def encode(thing: TraceRequest | Job | Reply | ReferenceCalls | ReferenceResults) -> bytes:
    """A message as one line of JSON."""
    return json.dumps(_CONVERTER.unstructure(thing)).encode() + b"\n"


def decode(data: bytes, kind: type[T]) -> T:
    """A message of this kind. Raises ValueError for malformed bytes."""
    try:
        return _CONVERTER.structure(json.loads(data), kind)
    except (ClassValidationError, RecursionError, KeyError, TypeError) as problem:
        raise ValueError(f"no {kind.__name__}: {type(problem).__name__}") from problem
