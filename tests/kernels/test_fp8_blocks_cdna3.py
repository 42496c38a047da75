"""FNUZ products with scales of blocks on MI300X: proved, right, without spills; wrong twins are not proved."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16, float8_e4m3fnuz

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.interp.run import run
from argus.kernels.fp8_blocks_cdna3 import CONFIGS, gemm_fp8_fnuz_blocks
from argus.kernels.schedules import cdna3_blocks, cdna3_interleaved
from argus.runtime.machine.validate import validate_code
from argus.verifier.kernel import verify
from tests.kernels.twins import Edit, twin


@pytest.mark.share(56, among="fp8 blocks cdna3")
@pytest.mark.parametrize("solver", ["z3", pytest.param("cvc5", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("config", ["interleaved_128", pytest.param("interleaved_any", marks=pytest.mark.nightly)])
def test_sums_of_blocks_are_scaled(config: str, solver: str) -> None:
    assert {"interleaved_128", "interleaved_any"} == set(CONFIGS)
    verdict = verify(gemm_fp8_fnuz_blocks, config=config, solver=solver, budget=evolve(Budget(), runs=0)).verdict

    assert isinstance(verdict, Proved), verdict
    assert {"I3", "I4", "I5", "I28", "I35"} <= dict(verdict.coverage).keys()
    told, claimed = verdict.results
    assert told == "each element of `C` is bf16(sum over kb, k of (sum over k of B * A) * (scale_a * scale_b))"
    assert "(scale_a[k_2, i0] * scale_b[(i1 // 128), k_2])" in claimed


@pytest.mark.share(56, among="fp8 blocks cdna3")
@pytest.mark.parametrize(("m", "n", "k"), [(70, 150, 272), (3, 20, 16)])
def test_results_with_scales_of_blocks(m: int, n: int, k: int) -> None:
    """Exact: products and sums of few bits, scales that are powers of two."""
    random, blocks, columns = np.random.default_rng(0), -(-k // 128), -(-n // 128)
    a, b = (random.integers(-4, 5, (rows, k)) / 2 for rows in (m, n))
    of_a, of_b = (2.0 ** random.integers(-2, 3, shape) for shape in ((blocks, m), (columns, blocks)))
    given = {
        "A": a.astype(float8_e4m3fnuz),
        "B": b.astype(float8_e4m3fnuz),
        "scale_a": of_a.astype(np.float32),
        "scale_b": of_b.astype(np.float32),
    }

    sizes = {"M": m, "N": n, "K": k, "KB": blocks, "NB": columns}
    found = run(gemm_fp8_fnuz_blocks.trace("interleaved_any"), sizes, given)

    assert not found.violations
    of_rows, of_columns = np.repeat(of_a.T, 128, 1)[:, :k], np.repeat(np.repeat(of_b, 128, 0)[:n], 128, 1)[:, :k]
    assert np.array_equal(found.arrays["C"], ((a * of_rows) @ (b * of_columns).T).astype(bfloat16))


@pytest.mark.nightly
@pytest.mark.parametrize("config", CONFIGS)
def test_machine_code_agrees_with_the_interpreter(config: str) -> None:
    columns = 136 if CONFIGS[config].wide else 131
    sizes = [
        {"M": 130, "N": columns, "K": 400, "KB": 4, "NB": 2},
        {"M": 5, "N": columns - 128, "K": 16, "KB": 1, "NB": 1},
    ]
    found = validate_code(gemm_fp8_fnuz_blocks.trace(config), sizes, seeds=2)
    assert all(each.right and each.elements for each in found.trials), found


@pytest.mark.share(56, among="fp8 blocks cdna3")
@pytest.mark.parametrize("config", CONFIGS)
def test_sums_stay_in_registers(config: str, tmp_path: Path) -> None:
    report = build(gemm_fp8_fnuz_blocks.trace(config), directory=tmp_path).report

    assert isinstance(report, ResourceReport)
    assert (report.vgpr_spills, report.sgpr_spills, report.scratch_bytes) == (0, 0, 0)


EDITS: dict[str, tuple[ModuleType, Edit]] = {
    "scales of the next block of K": (cdna3_blocks, ("of_rows(k)", "of_rows(k + 1)")),
    "scales of the first block of K": (cdna3_blocks, ("of_rows(k)", "of_rows(0)")),
    "rows' scales of the next tile": (cdna3_blocks, ("(cfg.bm,), (m,)", "(cfg.bm,), (m + 1,)")),
    "columns' scale of the next block of K": (cdna3_blocks, ("blocks + i, k]", "blocks + i, k + 1]")),
    "columns' scale of the first block": (cdna3_blocks, ("n * blocks + i, k]", "i, k]")),
    "columns' scale of the block beside": (cdna3_blocks, ("n * blocks + i, k]", "n * blocks + i + 1, k]")),
    "rows' scales alone": (cdna3_blocks, ("rows * columns[i * blocks // _HALVES]", "rows * 1.0")),
    "scales of the block after that of the sums": (
        cdna3_interleaved,
        ("is None else scales.factors()", "is None else (load(k + 1), scales.factors())[1]"),
    ),
    "sums of all blocks until here": (
        cdna3_interleaved,
        ("init=scales is not None and s == 0", "init=scales is not None and s == 2"),
    ),
    "the second half of a block alone": (
        cdna3_interleaved,
        ("init=scales is not None and s == 0", "init=scales is not None"),
    ),
    "one half scaled and added twice": (
        cdna3_interleaved,
        ("scales.add(each, part, factor)", "scales.add(each, sums[0], factor)"),
    ),
    "added without the factor": (cdna3_blocks, ("fma(part, scale, acc)", "acc + part")),
    "scaled twice": (cdna3_blocks, ("fma(part, scale, acc)", "fma(part, scale * scale, acc)")),
    "the sums before are scaled too": (cdna3_blocks, ("fma(part, scale, acc)", "(part + acc) * scale")),
}


@pytest.mark.share(56, among="fp8 blocks cdna3")
@pytest.mark.parametrize("name", EDITS)
def test_a_kernel_with_one_edit_is_not_proved(name: str) -> None:
    module, edit = EDITS[name]
    wrong = twin(gemm_fp8_fnuz_blocks, "interleaved_128", module, edit)
    verdict = verify(wrong, solver="z3", budget=Budget.about(0.1)).verdict

    assert not isinstance(verdict, Proved)
