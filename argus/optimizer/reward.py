"""What a time is predicted to be where no GPU is at hand, and what the compiler says of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import asdict, frozen

from argus.core.ir import Kernel
from argus.emit.artifact import Artifact


@frozen
class Predicted:
    """microseconds: of one call. notes: what the model leaves out."""

    microseconds: float
    notes: tuple[str, ...] = ()


Predict = Callable[[Kernel, Mapping[str, int], Any], Predicted]
"""Of a kernel at sizes, with the compiler's report."""


def resources(artifact: Artifact) -> dict[str, float]:
    """The numbers of the compiler's report."""
    return {
        name: float(value)
        for name, value in asdict(artifact.report).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
