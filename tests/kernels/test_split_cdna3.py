"""Split-K on MI300X: a program of two launches, proved and equal to the float64 product."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from argus.core.verdict import Proved
from argus.emit.build import build
from argus.interp.programs import run_program
from argus.kernels.cdna3_split import CONFIGS, gemm_split
from argus.verifier.program import verify_program


@pytest.mark.share(2660, among="K in parts on MI300X")
@pytest.mark.parametrize("config", CONFIGS)
def test_each_number_of_parts_is_proved(config: str) -> None:
    report = verify_program(gemm_split.trace(config), solver="z3")
    assert isinstance(report.verdict, Proved)


@pytest.mark.share(2660, among="K in parts on MI300X")
@pytest.mark.parametrize("depth", [8, 72, 264])
def test_partial_sums_add_up_to_the_float64_product(depth: int) -> None:
    sizes = {"M": 70, "N": 132, "K": depth}
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, (sizes[rows], depth)).astype(np.float32) for rows in "MN")

    outcome = run_program(gemm_split.trace("small_4"), sizes, {"A": a, "B": b})

    found = outcome.arrays["C"]
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    assert np.array_equal(found.astype(np.float64), exact.astype(found.dtype).astype(np.float64))


def test_both_launches_are_compiled_without_spills(tmp_path: Path) -> None:
    traced = gemm_split.trace("split_4")
    made = [build(launch.kernel, directory=tmp_path) for launch in traced.launches]
    assert [each.report.spills for each in made] == [False, False]
