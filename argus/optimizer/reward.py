"""What a time is predicted to be where no GPU is at hand, and what the compiler says of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from attrs import asdict

from argus.core.cost.occupancy import Compiled
from argus.core.cost.predict import Prediction
from argus.core.ir import Kernel
from argus.emit.artifact import Artifact
from argus.emit.cuda.ptxas import AssemblerReport
from argus.emit.report import ResourceReport

Predict = Callable[[Kernel, Mapping[str, int], Compiled], Prediction]
"""Of a kernel at sizes, with what the compiler says of it."""


def compiled(artifact: Artifact) -> Compiled:
    """The compiler's report, as the static model reads it. Registers for accumulators count as others do."""
    report = artifact.report
    match report:
        case AssemblerReport():
            spilled = report.spill_stores + report.spill_loads
            return Compiled(report.registers, spilled, serialised=report.serialised)
        case ResourceReport():
            return Compiled(report.registers, report.scratch_bytes, report.lds_bytes)
        case _:
            assert_never(report)


def resources(artifact: Artifact) -> dict[str, float]:
    """The numbers of the compiler's report."""
    return {
        name: float(value)
        for name, value in asdict(artifact.report).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
