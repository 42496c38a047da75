"""What the three processes tell each other, as bytes: the asker, the one that runs the text, the one that judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from attrs import frozen
from cattrs.errors import ClassValidationError
from cattrs.preconf.json import make_converter

from argus.runtime.sandbox.answers import Exact
from argus.runtime.sandbox.request import Judged, Task

T = TypeVar("T")
_CONVERTER = make_converter(forbid_extra_keys=True)


@frozen
class Text:
    """To the process that runs the text. kernel: which of its kernels; all if empty."""

    text: str
    file: str
    kernel: str
    seconds: float


@frozen
class Job:
    """To the process that judges, ahead of what the text came to."""

    text: str
    file: str
    tasks: tuple[Task, ...]


@frozen
class Told:
    """A diagnostic, in the schema `argus.diagnostic/1` and as text."""

    diagnostic: Mapping[str, Any]
    text: str


@frozen
class Reply:
    """Of the process that judges: kernels, or why there are none."""

    kernels: tuple[Judged, ...] = ()
    refused: Told | None = None


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
        """Raises ValueError for bytes that are no such array."""
        if min(self.shape, default=0) < 0:
            raise ValueError("an extent is negative")
        return np.frombuffer(self.data, np.float64).reshape(self.shape)


@frozen
class Questions:
    """To the process that runs a text's reference. given: arrays by name, of each call. sizes: for its `work`."""

    text: str
    file: str
    given: tuple[Mapping[str, Floats], ...]
    sizes: Mapping[str, int]
    seconds: float


@frozen
class Answers:
    """given: what each call gave, by output, by no name where it gave one array. work: what `work` said, as JSON.

    fault: why there are none.
    """

    given: tuple[Mapping[str, Floats], ...] = ()
    work: str = ""
    fault: str = ""


def encoded(thing: Text | Job | Reply | Questions | Answers) -> bytes:
    """One line."""
    return json.dumps(_CONVERTER.unstructure(thing)).encode() + b"\n"


def decoded(data: bytes, kind: type[T]) -> T:
    """Raises ValueError for bytes that are no such thing."""
    try:
        return _CONVERTER.structure(json.loads(data), kind)
    except (ClassValidationError, RecursionError, KeyError, TypeError) as problem:
        raise ValueError(f"no {kind.__name__}: {type(problem).__name__}") from problem
