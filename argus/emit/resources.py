"""A compiler's report as the static model takes it."""

from __future__ import annotations

from argus.core.cost import Compiled
from argus.emit.cuda.ptxas import AssemblerReport
from argus.emit.hip.resource_report import ResourceReport


def compiled(report: ResourceReport | AssemblerReport) -> Compiled:
    """Shared memory of CUDA is what our plan says: the assembler does not see it."""
    if isinstance(report, ResourceReport):
        return Compiled(report.registers, spilled=report.scratch_bytes, shared=report.lds_bytes, beside=report.beside)
    return Compiled(report.registers, spilled=report.spill_stores, serialised=report.serialised)
