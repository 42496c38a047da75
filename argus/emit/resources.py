"""Convert a compiler's resource report into the input of the static cost model."""

from __future__ import annotations

from argus.core.cost import Compiled
from argus.emit.cuda.ptxas import AssemblerReport
from argus.emit.hip.resource_report import ResourceReport


def compiled_from_report(report: ResourceReport | AssemblerReport) -> Compiled:
    """The cost model's view of a report. CUDA shared memory is dynamic, so ptxas does not report it."""
    if isinstance(report, ResourceReport):
        return Compiled(
            report.registers, spilled=report.scratch_bytes, shared=report.lds_bytes, moves_per_mma=report.beside
        )
    return Compiled(report.registers, spilled=report.spill_stores, serialised=report.serialised)
