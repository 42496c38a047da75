"""Type of the static model's prediction, and the numbers of the compiler's resource report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import asdict

from argus.core.cost.occupancy import Compiled
from argus.core.cost.predict import Prediction
from argus.core.ir import Kernel
from argus.emit.artifact import Artifact
from argus.emit.build_program import BuiltProgram

Predict = Callable[[Kernel, Mapping[str, int], Compiled], Prediction]
"""Predicts the time of a kernel at sizes, given the compiler's resource report."""


def resources_of(built: Artifact | BuiltProgram) -> dict[str, float]:
    """Those of a kernel; of a program the most of any launch."""
    return most_of(list(map(resources, built.kernels if isinstance(built, BuiltProgram) else (built,))))


def most_of(each_one: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The most of each number."""
    found: dict[str, float] = {}
    for each in each_one:
        for name, value in each.items():
            found[name] = max(value, found.get(name, value))
    return found


def resources(artifact: Artifact) -> dict[str, float]:
    """The numeric fields of the compiler's report."""
    return {
        name: float(value)
        for name, value in asdict(artifact.report).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
