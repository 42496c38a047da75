"""Products of rows of any length on MI300X: right as interpreted, without spills; wrong twins are not proved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.interp.run import run
from argus.kernels.gemm import gemm
from argus.kernels.schedules import cdna3_interleaved as schedule
from argus.verifier.kernel import verify
from tests.kernels.twins import twin

LENGTHS = {"interleaved_pairs": 138, "interleaved_narrow": 71}
"""Configurations, and a K of theirs that ends amid a tile and a vector."""


@pytest.mark.share(6)
@pytest.mark.parametrize("config", LENGTHS)
def test_rows_of_any_length_are_multiplied(config: str) -> None:
    """Exact: the elements are small whole numbers."""
    kernel, k = gemm.trace(config), LENGTHS[config]
    a, b = (np.random.default_rng(seed).integers(-2, 3, (rows, k)) for seed, rows in enumerate((70, 139)))

    found = run(kernel, {"M": 70, "N": 139, "K": k}, {"A": a.astype(bfloat16), "B": b.astype(bfloat16)})

    assert not found.violations
    assert np.array_equal(found.arrays["C"].astype(np.int64), a @ b.T)
    assert isinstance(verify(kernel, solver="z3").verdict, Proved)


@pytest.mark.share(12, among="narrow cdna3")
@pytest.mark.parametrize("config", LENGTHS)
def test_sums_stay_in_registers(config: str, tmp_path: Path) -> None:
    report = build(gemm.trace(config), directory=tmp_path).report

    assert isinstance(report, ResourceReport)
    assert (report.vgpr_spills, report.sgpr_spills, report.scratch_bytes) == (0, 0, 0)


EDITS: dict[str, tuple[str, tuple[str, str]]] = {
    "loads of 16 bytes": ("interleaved_narrow", ("atom.vector_bits <= bits", "atom.vector_bits <= 128")),
    "pairs of any rows": ("interleaved_pairs", ("align=cfg.align", "align=2")),
    "the last part of K left out": (
        "interleaved_narrow",
        ("ceil_div(problem.A.shape[-1], cfg.bk)", "problem.A.shape[-1] // cfg.bk"),
    ),
    "rows of the next tile": (
        "interleaved_narrow",
        ("each.tensor.tile(each.held.shape, (at, k))", "each.tensor.tile(each.held.shape, (at + 1, k))"),
    ),
    "stored before it arrives": ("interleaved_narrow", ("        vmem.wait(0)\n        _store", "        _store")),
}


@pytest.mark.share(12, among="narrow cdna3")
@pytest.mark.parametrize("name", EDITS)
def test_a_kernel_with_one_edit_is_not_proved(name: str) -> None:
    config, edit = EDITS[name]
    wrong = twin(gemm, config, schedule, edit)

    assert not isinstance(verify(wrong, solver="z3", budget=Budget.about(0.1)).verdict, Proved)
