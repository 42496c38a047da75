"""Compiler reports as input of the static model: the model's occupancy equals the compiler's."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.core.cost import MACHINES, occupancy, predict
from argus.emit.build import build
from argus.emit.cuda.ptxas import AssemblerReport
from argus.emit.hip.resource_report import ResourceReport
from argus.emit.resources import compiled_from_report
from argus.kernels.gemm import gemm

CUBE = {"M": 4096, "N": 4096, "K": 4096}


@pytest.mark.share(4)
@pytest.mark.parametrize("config", ["cdna3", "cdna3_pingpong"])
def test_waves_of_a_compute_unit_are_the_compilers(config: str, tmp_path: Path) -> None:
    kernel = gemm.trace(config)
    report = build(kernel, directory=tmp_path).report
    assert isinstance(report, ResourceReport)
    taken = compiled_from_report(report)
    assert taken.shared == report.lds_bytes > 0
    found = occupancy(kernel, MACHINES["gfx942"], taken)
    assert found.waves == 4 * report.occupancy  # of a compute unit, and of one of its four SIMDs
    assert not any("estimate" in note for note in predict(kernel, CUBE, taken).notes)


def test_an_assemblers_report() -> None:
    report = AssemblerReport(168, 3, 16, 12, 24, 0, (("C7510", "wgmma serialised"),))
    taken = compiled_from_report(report)
    assert (taken.registers, taken.spilled, taken.shared, taken.serialised) == (168, 12, None, True)
    assert compiled_from_report(AssemblerReport(168, 3, 0, 0, 0, 0, ())).serialised is False
