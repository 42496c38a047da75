"""GEMM of 8-bit integers on MI300X: formulas proved, sums exact, no spills; wrong twins are not proved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.interp.interpret import interpret
from argus.kernels.i8_cdna3 import gemm_i8, gemm_i8_scaled
from argus.kernels.schedules import cdna3_interleaved as schedule
from argus.kernels.schedules import epilogues
from argus.verifier.kernel import verify
from tests.kernels.twins import twin

FAMILIES = {each.name: each for each in (gemm_i8, gemm_i8_scaled)}
CASES = [(family, config) for family, each in FAMILIES.items() for config in each.configs]
SUMS = "total(lambda k_2: scalar(A[i0, k_2]) * scalar(B[i1, k_2]), over=K)"
CLAIMED = {"gemm_i8": SUMS, "gemm_i8_scaled": f"scale_a[i0] * scale_b[i1] * {SUMS}"}


@pytest.mark.share(12)
@pytest.mark.parametrize(("family", "config"), CASES)
def test_each_output_is_its_formula(family: str, config: str) -> None:
    verdict = verify(FAMILIES[family], config=config, solver="z3").verdict

    assert isinstance(verdict, Proved)
    assert f": {CLAIMED[family]})" in verdict.results[1]
    assert "K <= 131071" in verdict.assumptions


@pytest.mark.nightly
@pytest.mark.parametrize(("family", "config"), CASES)
def test_it_is_proved_by_cvc5_and_compiled_without_spills(family: str, config: str, tmp_path: Path) -> None:
    made = FAMILIES[family].trace(config)
    report = build(made, directory=tmp_path).report

    assert isinstance(verify(made, solver="cvc5").verdict, Proved)
    assert isinstance(report, ResourceReport)
    assert (report.vgpr_spills, report.sgpr_spills, report.scratch_bytes) == (0, 0, 0)


def test_sums_of_integers_are_exact() -> None:
    m, n, k = 40, 72, 272
    random = np.random.default_rng(0)
    a, b = (random.integers(-128, 128, (rows, k), np.int8) for rows in (m, n))
    found = interpret(gemm_i8.trace("interleaved_128"), a, b, np.zeros((m, n), np.int32), tags=False)["C"]

    np.testing.assert_array_equal(found, a.astype(np.int64) @ b.T.astype(np.int64))


@pytest.mark.share(2)
def test_k_of_2_to_the_17_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of tiles are summed apart: counted together, and without padding, they are as many products as K."""
    monkeypatch.setattr(schedule, "MOST_INTEGERS", (1 << 17) + 1)
    found = verify(gemm_i8.trace("interleaved_any"), solver="z3").verdict

    assert isinstance(found, Refuted)
    assert found.counterexample.code == "I28"
    assert dict(found.counterexample.sizes)["K"] == 1 << 17


EDITS: dict[str, tuple[str, str]] = {
    "one part of C twice": ("(m, _HALVES * n + i)", "(m, _HALVES * n)"),
    "a half of K twice": ("fetch(1)\n", "fetch(0)\n"),
    "a tile of K left out": ("        load(k + 1)", "        load(k + 2)"),
    "rows of A for both operands": (
        "_multiplied(problem, (problem.B,), cfg, scales)",
        "_multiplied(problem, (problem.A,), cfg, scales)",
    ),
    "overwritten while read": ("            sync()  # the whole tile is in registers\n", ""),
    "K is not bounded": ("        assume(problem.A.shape[-1] < MOST_INTEGERS)\n", "        pass\n"),
}


@pytest.mark.share(32, among="integers with one edit")
@pytest.mark.parametrize("name", EDITS)
def test_a_schedule_with_one_edit_is_not_proved(name: str) -> None:
    wrong = twin(gemm_i8, "interleaved_128", schedule, EDITS[name])

    assert not isinstance(verify(wrong, solver="z3", budget=Budget.about(0.1)).verdict, Proved)


SCALES: dict[str, tuple[str, str]] = {
    "scales of the next row": (
        "source.tile((acc.shape[axis],), (at[axis],))",
        "source.gather((int(acc.shape[axis]),), lambda i, axis=axis: (acc.shape[axis] * at[axis] + i + 1,), outside=0)",
    ),
    "scales of the next tile": ("(at[axis],)), held", "(at[axis] + 1,)), held"),
    "one scale twice": ("rows * columns", "rows * rows"),
    "columns not scaled": ("rows * columns", "rows"),
}


@pytest.mark.share(32, among="integers with one edit")
@pytest.mark.parametrize("name", SCALES)
def test_scales_with_one_edit_are_not_proved(name: str) -> None:
    wrong = twin(gemm_i8_scaled, "interleaved_128", epilogues, SCALES[name])

    assert not isinstance(verify(wrong, solver="z3", budget=Budget.about(0.1)).verdict, Proved)
