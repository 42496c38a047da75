"""Fused epilogues on MI300X: right as interpreted, without spills; kernels with one edit are not proved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.interp.run import run
from argus.kernels.epilogues import CDNA3, gemm_bias, gemm_bias_relu, gemm_bias_silu, gemm_scaled
from argus.kernels.fp8_cdna3 import gemm_fp8_fnuz
from argus.kernels.fused import gemm_bias_gelu
from argus.kernels.gated import gemm_gated_silu
from argus.kernels.residual import gemm_residual
from argus.kernels.schedules import cdna3_interleaved as schedule
from argus.kernels.schedules import epilogues
from argus.language import Template
from argus.verifier.kernel import verify
from tests.kernels.twins import twin

Array = np.ndarray[Any, np.dtype[np.float64]]
FAMILIES = (gemm_bias, gemm_bias_relu, gemm_bias_silu, gemm_bias_gelu, gemm_scaled, gemm_residual, gemm_gated_silu)


@pytest.mark.share(168, among="registers on gfx942")
@pytest.mark.parametrize("config", CDNA3)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.name)
def test_values_of_an_epilogue_stay_in_registers(family: Template, config: str, tmp_path: Path) -> None:
    report = build(family.trace(config), directory=tmp_path).report

    assert isinstance(report, ResourceReport)
    assert (report.vgpr_spills, report.sgpr_spills, report.scratch_bytes) == (0, 0, 0)


def drawn(*shape: int, seed: int) -> Array:
    """Numbers of bf16 near 1 in size."""
    return np.random.default_rng(seed).standard_normal(shape).astype(bfloat16).astype(np.float64)


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


M, N, K = 70, 139, 72
A, W, V, R = drawn(M, K, seed=0), drawn(N, K, seed=1) / 8, drawn(N, K, seed=2) / 8, drawn(M, N, seed=3)
BIAS = np.random.default_rng(4).standard_normal(N).astype(np.float32).astype(np.float64)
EXACT: dict[str, tuple[Template, Callable[[Array], Array]]] = {
    "bias": (gemm_bias, lambda x: x + BIAS),
    "relu": (gemm_bias_relu, lambda x: np.maximum(x + BIAS, 0)),
    "silu": (gemm_bias_silu, lambda x: silu(x + BIAS)),
    "gelu": (gemm_bias_gelu, lambda x: gelu(x + BIAS)),
    "scaled": (gemm_scaled, lambda x: 1.5 * x),
    "residual": (gemm_residual, lambda x: x + R),
    "gated": (gemm_gated_silu, lambda x: silu(x) * (A @ V.T)),
}


@pytest.mark.share(84, among="epilogues cdna3")
@pytest.mark.parametrize("name", EXACT)
def test_the_interpreter_agrees_with_float64(name: str) -> None:
    """With tails in every direction."""
    family, exact = EXACT[name]
    kernel = family.trace("interleaved_any")
    every = {"A": A, "B": W, "W": W, "V": V, "R": R, "bias": BIAS, "alpha": np.full(1, 1.5)}
    given = {each.name: every[each.name].astype(each.dtype.numpy) for each in kernel.parameters if each.name != "C"}

    found = run(kernel, {"M": M, "N": N, "K": K}, given)

    assert not found.violations
    assert np.allclose(found.arrays["C"].astype(np.float64), exact(A @ W.T), rtol=2.0**-7, atol=2.0**-8)


HALVES = "epilogue(sums.T, at) for sums, at in zip(acc, parts, strict=True)"
EDITS: dict[str, tuple[Template, ModuleType, tuple[str, str]]] = {
    "bias of the next columns": (gemm_bias, epilogues, ("(acc.shape[1],), (at[1],)", "(acc.shape[1],), (at[1] + 1,)")),
    "bias of one half for both": (gemm_bias, schedule, (HALVES, HALVES.replace("sums.T, at)", "sums.T, parts[0])"))),
    "bias added twice": (gemm_bias, epilogues, ("then(acc + held)", "then(acc + held + held)")),
    "bias not waited for": (gemm_bias, schedule, ("    vmem.wait(0)\n    for sums, made", "    for sums, made")),
    "vectors of any columns": (gemm_bias, epilogues, ("buffer_load[: held.dtype.bits // 16] if single else ", "")),
    "another threshold": (gemm_bias_relu, epilogues, ("maximum(x, 0.0)", "maximum(x, 1.0)")),
    "a gate of twice the sum": (gemm_bias_silu, epilogues, ("fma(half, tanh(half), half)", "fma(half, tanh(x), half)")),
    "coefficients exchanged": (gemm_bias_gelu, epilogues, ("CUBIC, LINEAR)), half", "LINEAR, CUBIC)), half")),
    "one of two scales": (gemm_fp8_fnuz, epilogues, ("reduce(mul, loaded)", "reduce(mul, loaded[:1])")),
    "a scale squared": (gemm_scaled, epilogues, ("reduce(mul, loaded)", "reduce(mul, loaded + loaded)")),
    "residual of the next rows": (
        gemm_residual,
        epilogues,
        ("residual.tile(acc.shape, at)", "residual.tile(acc.shape, (at[0] + 1, at[1]))"),
    ),
    "gate and value exchanged": (
        gemm_gated_silu,
        schedule,
        ("combine(acc[0].T, acc[1].T)", "combine(acc[1].T, acc[0].T)"),
    ),
    "one weight for both": (gemm_gated_silu, schedule, ("right[i // per]", "right[0]")),
    "tiles of twice the columns": (
        gemm_gated_silu,
        schedule,
        ("problem.tiles(cfg.bm, cfg.bn // len(weights))", "problem.tiles(cfg.bm, cfg.bn)"),
    ),
}


@pytest.mark.share(84, among="epilogues cdna3")
@pytest.mark.parametrize("name", EDITS)
def test_a_kernel_with_one_edit_is_not_proved(name: str) -> None:
    family, module, edit = EDITS[name]
    wrong = twin(family, "interleaved_any", module, edit)

    assert not isinstance(verify(wrong, solver="z3", budget=Budget.about(0.1)).verdict, Proved)
