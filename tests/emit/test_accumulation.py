"""Accumulators in AGPRs on gfx942: the compiled code with and without them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import ml_dtypes
import numpy as np
import pytest
from attrs import evolve, frozen

from argus.core.cost import MACHINES, occupancy, predict
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.ir.pretty import pretty
from argus.emit.build import build, compile_resources
from argus.emit.hip.resource_report import ResourceReport
from argus.emit.hip.text import hip_text
from argus.emit.names import assign_names
from argus.emit.resources import compiled_from_report
from argus.kernels.config_names import name_of
from argus.kernels.gemm import Config, gemm
from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.language import Tensor, block_id, ceil_div, copy, f32, gfx942, kernel, spread, zeros
from tests.emit import host

FULL = Cdna3Staged(bm=256, bn=256, run=8, vector=8, swizzle=True)
_PASSES = re.compile(r" *#pragma unroll\n.*\n *held\(acc_\[at\]\);\n")
"""They hold products whose sums are not in accumulation registers between waits."""
SMALL = Cdna3Staged(bm=128, bn=128, bk=64, mfma=16, run=8, vector=8, swizzle=True, guarded=True, unroll=2)


def traced(config: Config) -> Kernel:
    return gemm.instance(config, name_of(config))


@frozen
class Made:
    """into: of each matrix instruction, in the order of the text, `a` or `v`: the file that it sums into."""

    report: ResourceReport
    into: str
    warnings: int


@cache
def made(config: Config) -> Made:
    with TemporaryDirectory() as folder:
        artifact = build(traced(config), directory=Path(folder))
        assert artifact.assembly is not None
        text = artifact.assembly.read_text()
    assert isinstance(artifact.report, ResourceReport)
    return Made(
        artifact.report, "".join(re.findall(r"^\s+v_mfma\S+ ([av])\[", text, re.MULTILINE)), len(artifact.warnings)
    )


@pytest.mark.share(24, among="sums in registers")
@pytest.mark.parametrize(
    ("config", "sums"),
    [(FULL, 256), (SMALL, 64), (Cdna3(), 64), (Cdna3PingPong(mfma=32), 128)],
    ids=["full", "small", "double buffer", "ping-pong"],
)
def test_all_products_sum_into_accumulation_registers(config: Config, sums: int) -> None:
    found = made(evolve(config, agprs=True))

    assert set(found.into) == {"a"}
    assert sums <= found.report.agprs <= 256
    assert not found.report.spills
    assert found.warnings == 0


@pytest.mark.share(24, among="sums in registers")
@pytest.mark.parametrize("config", [SMALL, Cdna3(), Cdna3PingPong(mfma=32)])
def test_otherwise_the_compiler_uses_half_of_the_register_file(config: Config) -> None:
    found = made(config)

    assert set(found.into) == {"v"}
    assert found.report.agprs == 0


@pytest.mark.share(24, among="sums in registers")
def test_the_tile_that_fills_them_no_longer_moves_sums() -> None:
    """Without, sums are where there is room, and each trip of the loop moves them about, even with no register spilled
    since addresses are computed anew.
    """
    before, after = made(FULL), made(evolve(FULL, agprs=True))

    assert set(before.into) == {"a", "v"}
    assert not before.report.spills
    assert before.report.sgpr_spills > 0
    assert before.report.beside > 0.5
    assert after.report.beside == 0
    sizes = {"M": 4096, "N": 4096, "K": 4096}
    slow, quick = (
        predict(traced(FULL), sizes, compiled_from_report(each.report)).microseconds for each in (before, after)
    )
    assert quick < slow


@pytest.mark.share(3)
def test_a_report_for_the_model_is_that_of_the_code() -> None:
    assert compile_resources(traced(SMALL)) == compiled_from_report(made(SMALL).report)


def test_both_kinds_of_registers_count_for_occupancy() -> None:
    config = evolve(SMALL, bm=256, unroll=1, agprs=True)
    report = made(config).report
    held = occupancy(traced(config), MACHINES["gfx942"], compiled_from_report(report))

    assert report.agprs == 128
    assert report.vgprs > 128
    assert report.registers >= report.vgprs + report.agprs
    assert held.registers == report.registers
    assert (held.blocks, held.limit) == (1, "registers")
    assert held.waves == 4 * report.occupancy
    alone = evolve(compiled_from_report(report), registers=report.vgprs, shared=0)
    assert occupancy(traced(config), MACHINES["gfx942"], alone).blocks > 1


# -- results are unchanged --------------------------------------------------------------------------------------


def test_nothing_else_of_a_kernel_changes() -> None:
    plain, kept = traced(SMALL), traced(evolve(SMALL, agprs=True))
    renamed = pretty(kept).replace(" in accumulation registers", "").replace(kept.name, plain.name)

    assert "in accumulation registers" in pretty(kept)
    assert renamed == pretty(plain)


def test_the_text_differs_by_what_keeps_sums_there() -> None:
    plain, kept = traced(SMALL), traced(evolve(SMALL, agprs=True))
    before = _PASSES.sub("", hip_text(plain)).replace(plain.name, "").splitlines()
    after = hip_text(kept).replace(kept.name, "").splitlines()
    more = [line.strip() for line in after if line not in before]

    assert [line for line in before if line not in after] == []
    assert len(more) == 5
    assert 'asm volatile("" : : : "a63");  // 64 accumulation registers' in more
    assert "accumulated(acc_[at]);" in more


@pytest.mark.share(4)
@pytest.mark.skipif(not host.available(), reason="runs emitted text on 64-bit Linux")
@pytest.mark.parametrize("config", [Cdna3Staged(agprs=True), Cdna3Staged(mfma=16, agprs=True)], ids=name_of)
def test_it_computes_the_same(config: Cdna3Staged, tmp_path: Path) -> None:
    made_of, rng = traced(config), np.random.default_rng(3)
    a, b = (rng.standard_normal((rows, 40)).astype(ml_dtypes.bfloat16) for rows in (70, 90))
    c = np.zeros((70, 90), ml_dtypes.bfloat16)
    sizes = {"M": 70, "N": 90, "K": 40}
    order = [sizes[size.name] for size in made_of.sizes]
    host.run(hip_text(made_of), assign_names(made_of).kernel, made_of.threads, (2, 2), (a, b, c), order, tmp_path)
    wanted = a.astype(np.float64) @ b.astype(np.float64).T

    assert np.abs(c.astype(np.float64) - wanted).max() < 0.05 * np.abs(wanted).max()


# -- refusals --------------------------------------------------------------------------------------------------


@kernel(target=gfx942, threads=256)
def cleared(C: Tensor["M 64", f32]) -> None:
    tile = zeros(f32, spread((64, 64), threads=256, vector=4), file="accumulation")
    (m,) = block_id((ceil_div(C.shape[0], 64),))
    copy(tile, C.tile((64, 64), (m, 0)), edge=0)


def test_a_tile_that_no_product_sums_into_is_not_built() -> None:
    with pytest.raises(ArgusError, match=r"E501.*not an accumulator of a matrix instruction"):
        hip_text(cleared.trace())
