"""FP8 GEMM: every configuration is proved and assembled without spills; the verdict states the scales."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16, float8_e4m3fn

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.emit.build import build
from argus.emit.cuda.text import cuda_text
from argus.interp.run import run
from argus.kernels.fp8 import gemm_fp8
from argus.kernels.fp8_blocks import BLOCK, Blocks, gemm_fp8_blocks
from argus.kernels.schedules import promoted
from argus.ops.choice import select_fp8_blocks
from argus.verifier.kernel import verify
from tests.kernels.twins import Edit, twin

WHOLE, BLOCKS = gemm_fp8.instances(), gemm_fp8_blocks.instances()


@pytest.mark.share(64, among="fp8")
@pytest.mark.parametrize("config", WHOLE)
def test_sums_are_scaled_once(config: str) -> None:
    verdict = verify(gemm_fp8, config=config, solver="z3").verdict

    assert isinstance(verdict, Proved)
    assert verdict.results == ("each element of `C` is bf16((sum over k of A * B) * (scale_a * scale_b))",)


@pytest.mark.share(64, among="fp8")
@pytest.mark.parametrize("config", BLOCKS)
def test_sums_of_blocks_are_scaled_and_added(config: str) -> None:
    verdict = verify(gemm_fp8_blocks, config=config, solver="z3").verdict

    assert isinstance(verdict, Proved)
    told = "each element of `C` is bf16(sum over kb, k of (A * B) * (scale_a * scale_b))"
    assert verdict.results == (told,)


@pytest.mark.share(9)
@pytest.mark.parametrize("config", ["clustered_bands", "whole_bands", "pingpong"])
def test_sums_of_whole_matrices_stay_in_registers(config: str, tmp_path: Path) -> None:
    assert not build(gemm_fp8.trace(config), directory=tmp_path).report.spills


@pytest.mark.share(64, among="fp8")
@pytest.mark.parametrize("config", [name for name in BLOCKS if name != "ragged"])
def test_sums_of_blocks_stay_in_registers(config: str, tmp_path: Path) -> None:
    assert not build(gemm_fp8_blocks.trace(config), directory=tmp_path).report.spills


def test_the_promoted_sum_of_a_block_is_rounded_once() -> None:
    assert "__fmaf_rn(registers" in cuda_text(gemm_fp8_blocks.trace("by_rows")).text


def drawn(seed: int, *shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.random.default_rng(seed).integers(-4, 5, shape) / 2


def test_results_with_one_scale_per_matrix() -> None:
    """Exact: products and sums of few bits, scales that are powers of two."""
    m, n, k = 70, 24, 144
    a, b = drawn(0, m, k), drawn(1, n, k)
    given = {
        "A": a.astype(float8_e4m3fn),
        "B": b.astype(float8_e4m3fn),
        "scale_a": np.full(1, 0.5, np.float32),
        "scale_b": np.full(1, 4.0, np.float32),
    }

    found = run(gemm_fp8.trace("columns_64"), {"M": m, "N": n, "K": k}, given).arrays["C"]

    assert np.array_equal(found, (2 * a @ b.T).astype(bfloat16))


SLOTS = {
    "slots": Blocks(bm=256, stages=3, whole=True, slots=True),
    "narrow": Blocks(bm=256, stages=4, narrow=True, slots=True, cluster=(2, 1)),
    "ordered": Blocks(slots=True, ordered=True),
}
"""Row scales in the stages, and ordered warpgroups: each alone, and in a cluster."""


@pytest.mark.share(64, among="fp8")
@pytest.mark.parametrize("config", SLOTS)
def test_scales_in_the_stages_are_proved_and_accumulators_stay_in_registers(config: str, tmp_path: Path) -> None:
    kernel = gemm_fp8_blocks.instance(SLOTS[config], config)

    assert isinstance(verify(kernel, solver="z3").verdict, Proved)
    assert not build(kernel, directory=tmp_path).report.spills


@pytest.mark.parametrize(
    ("shape", "chosen"),
    [
        ((4096, 4096, 4096), "rows_256_pairs"),
        ((8192, 8192, 8192), "columns_192_pairs"),
        ((2048, 2048, 2048), "ordered_bands"),
        ((8190, 8192, 8192), "rows_256_bands"),
        ((512, 512, 512), "by_rows"),
        ((512, 516, 512), "ragged"),
    ],
)
def test_scales_are_in_the_stages_if_tma_supports_their_rows(shape: tuple[int, int, int], chosen: str) -> None:
    assert select_fp8_blocks(*shape) == chosen


@pytest.mark.share(64, among="fp8")
@pytest.mark.parametrize("config", ["by_rows", "rows_256_whole", "ordered_bands", *SLOTS])
def test_results_with_block_scales(config: str) -> None:
    m, n, k = 72, 136, 400
    a, b = drawn(0, m, k), drawn(1, n, k)
    of_a = 2.0 ** np.random.default_rng(2).integers(-2, 3, (4, m))
    of_b = 2.0 ** np.random.default_rng(3).integers(-2, 3, (2, 4))
    given = {
        "A": a.astype(float8_e4m3fn),
        "B": b.astype(float8_e4m3fn),
        "scale_a": of_a.astype(np.float32),
        "scale_b": of_b.astype(np.float32),
    }

    kernel = gemm_fp8_blocks.instance(SLOTS[config], config) if config in SLOTS else gemm_fp8_blocks.trace(config)

    found = run(kernel, {"M": m, "N": n, "K": k, "KB": 4, "NB": 2}, given).arrays["C"]

    left = a * np.repeat(of_a, BLOCK, axis=0)[:k].T
    right = b * np.repeat(np.repeat(of_b, BLOCK, axis=0)[:n], BLOCK, axis=1)[:, :k]
    assert np.array_equal(found, (left @ right.T).astype(bfloat16))


PROMOTED: dict[str, Edit] = {
    "scales of the columns after": ("(pieces * n + piece) //", "(pieces * n + piece + 1) //"),
    "scales of the tile's first columns": ("(pieces * n + piece) //", "(pieces * n) //"),
    "scales by the tile's number": ("(pieces * n + piece) // (BLOCK // WIDTH)", "n"),
    "a piece of other columns": ("(0, j)) for j in", "(0, count - 1 - j)) for j in"),
    "both warpgroups multiply the first's rows": ("len(self.accs) * wg + p, 0", "0 * wg + p, 0"),
    "sums of the tile before are kept": ("acc[:] = 0.0", "pass"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROMOTED)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    made = twin(gemm_fp8_blocks, "columns_192_pairs", promoted, PROMOTED[name])

    assert not isinstance(verify(made, solver="z3", budget=evolve(Budget(), runs=0)).verdict, Proved)
