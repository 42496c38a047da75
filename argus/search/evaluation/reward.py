"""What a time is predicted to be where no GPU is at hand, and what the compiler says of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import asdict

from argus.core.cost.occupancy import Compiled
from argus.core.cost.predict import Prediction
from argus.core.ir import Kernel
from argus.emit.artifact import Artifact

Predict = Callable[[Kernel, Mapping[str, int], Compiled], Prediction]
"""Of a kernel at sizes, with what the compiler says of it."""


def resources(artifact: Artifact) -> dict[str, float]:
    """The numbers of the compiler's report."""
    return {
        name: float(value)
        for name, value in asdict(artifact.report).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
