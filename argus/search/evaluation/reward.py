"""Type of the static model's prediction, and the numbers of the compiler's resource report."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import asdict

from argus.core.cost.occupancy import Compiled
from argus.core.cost.predict import Prediction
from argus.core.ir import Kernel
from argus.emit.artifact import Artifact

Predict = Callable[[Kernel, Mapping[str, int], Compiled], Prediction]
"""Predicts the time of a kernel at sizes, given the compiler's resource report."""


def resources(artifact: Artifact) -> dict[str, float]:
    """The numeric fields of the compiler's report."""
    return {
        name: float(value)
        for name, value in asdict(artifact.report).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
