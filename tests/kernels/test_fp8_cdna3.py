"""Scaled products of FNUZ numbers on MI300X: proved, right as interpreted, without spills; wrong twins are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fnuz

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.interp.run import run
from argus.kernels.fp8_cdna3 import CONFIGS, gemm_fp8_fnuz
from argus.kernels.schedules import cdna3_interleaved as schedule
from argus.verifier.kernel import verify
from tests.kernels.twins import twin


@pytest.mark.share(24, among="fp8 cdna3")
@pytest.mark.parametrize("config", CONFIGS)
def test_sums_are_scaled_once(config: str) -> None:
    verdict = verify(gemm_fp8_fnuz, config=config, solver="z3").verdict

    assert isinstance(verdict, Proved)
    told, claimed = verdict.results
    assert told == "each element of `C` is bf16((sum over k of B * A) * (scale_a * scale_b))"
    assert "scale_a[0] * scale_b[0] * total(" in claimed


def test_results_with_one_scale_per_matrix() -> None:
    """Exact: products and sums of few bits, scales that are powers of two."""
    m, n, k = 70, 20, 144
    a, b = (np.random.default_rng(seed).integers(-4, 5, (rows, k)) / 2 for seed, rows in enumerate((m, n)))
    given = {
        "A": a.astype(float8_e4m3fnuz),
        "B": b.astype(float8_e4m3fnuz),
        "scale_a": np.full(1, 0.5, np.float32),
        "scale_b": np.full(1, 4.0, np.float32),
    }

    found = run(gemm_fp8_fnuz.trace("interleaved_any"), {"M": m, "N": n, "K": k}, given)

    assert not found.violations
    assert np.array_equal(found.arrays["C"], (2 * a @ b.T).astype(bfloat16))


@pytest.mark.share(168, among="registers on gfx942")
@pytest.mark.parametrize("config", CONFIGS)
def test_sums_stay_in_registers(config: str, tmp_path: Path) -> None:
    report = build(gemm_fp8_fnuz.trace(config), directory=tmp_path).report

    assert isinstance(report, ResourceReport)
    assert (report.vgpr_spills, report.sgpr_spills, report.scratch_bytes) == (0, 0, 0)


EDITS: dict[str, tuple[str, str]] = {
    "one part of C twice": ("(m, _HALVES * n + i)", "(m, _HALVES * n)"),
    "a half of K twice": ("fetch(1)\n", "fetch(0)\n"),
    "overwritten while read": ("            sync()  # the whole tile is in registers\n", ""),
    "loads not waited for": ("        vmem.wait(0)\n        _store", "        _store"),
    "one part not scaled": ("problem, cfg, made(),", "problem, cfg, sums.T if made is deferred[0] else made(),"),
}


@pytest.mark.share(24, among="fp8 cdna3")
@pytest.mark.parametrize("name", EDITS)
def test_a_kernel_with_one_edit_is_not_proved(name: str) -> None:
    wrong = twin(gemm_fp8_fnuz, "interleaved_128", schedule, EDITS[name])
    verdict = verify(wrong, solver="z3", budget=Budget.about(0.1)).verdict

    assert not isinstance(verdict, Proved)
