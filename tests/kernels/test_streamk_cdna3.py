"""Stream-K on MI300X: proved, right in the interpreter and in machine code, no spills, chosen where it is faster."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

from argus.core.ir import Program
from argus.core.verdict import Proved
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.interp.programs import run_program
from argus.kernels.cost_gfx942 import cheapest, microseconds, microseconds_in_parts
from argus.kernels.gemm import CONFIGS
from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.stream_cdna3 import CDNA3, Cdna3Stream
from argus.kernels.schedules.stream_k import Runs
from argus.kernels.streamk import gemm_streams, gemm_streams_f16
from argus.language import Int
from argus.ops.choice_gfx942 import select_parts
from argus.runtime.machine.validate import validate_code
from argus.verifier.program import verify_program

SHARES = [(1, 1), (4, 1), (3, 2), (11, 7), (3, 4), (2, 5)]


def streams(chunks: int, run: int) -> Program:
    return gemm_streams.instance(Cdna3Stream(chunks=chunks, run=run), "trial")


@pytest.mark.share(12)
@pytest.mark.parametrize(("chunks", "run"), SHARES)
def test_any_split_of_a_tile_is_proved(chunks: int, run: int) -> None:
    report = verify_program(streams(chunks, run), solver="z3")
    assert isinstance(report.verdict, Proved), [each.diagnostics for each in report.launches]
    assert report.verdict.results == ("each element of `C` is bf16(sum over k of B * A)",)


@pytest.mark.nightly
@pytest.mark.parametrize("config", CDNA3)
@pytest.mark.parametrize("family", [gemm_streams, gemm_streams_f16], ids=lambda each: each.name)
def test_shipped_configurations_are_proved_and_have_no_spills(family: object, config: str, tmp_path: Path) -> None:
    assert family in (gemm_streams, gemm_streams_f16)
    made = (gemm_streams if family is gemm_streams else gemm_streams_f16).trace(config)
    assert isinstance(verify_program(made, solver="z3").verdict, Proved)
    for launch in made.launches:
        report = build(launch.kernel, directory=tmp_path).report
        assert isinstance(report, ResourceReport)
        assert (report.spills, report.scratch_bytes) == (False, 0)


@pytest.mark.share(8)
@pytest.mark.parametrize(("chunks", "run"), [(3, 2), (2, 5), (4, 1)])
@pytest.mark.parametrize("shape", [(70, 136, 200), (5, 8, 8), (130, 260, 704)], ids=str)
def test_the_interpreter_computes_the_product(chunks: int, run: int, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, (rows, k)).astype(bfloat16) for rows in (m, n))
    given = {"A": a, "B": b, "C": np.zeros((m, n), bfloat16)}

    found = run_program(streams(chunks, run), {"M": m, "N": n, "K": k}, given)

    assert found.violations == ()
    wanted = (a.astype(np.float32) @ b.astype(np.float32).T).astype(bfloat16)
    assert np.array_equal(found.arrays["C"], wanted)


@pytest.mark.share(4)
@pytest.mark.parametrize(("chunks", "run"), [(3, 2), (4, 1), (2, 3)])
def test_machine_code_of_several_tiles_agrees_with_the_interpreter(chunks: int, run: int) -> None:
    sizes = {"M": 130, "N": 140, "K": 200}
    runs = Cdna3Stream(chunks=chunks, run=run).runs
    tiles = ceil(sizes["M"] / runs.rows) * ceil(sizes["N"] / runs.columns)
    sizes |= {"P": ceil(tiles * chunks / run), "S": runs.max_tiles, "R": runs.rows, "W": runs.columns}
    for launch in streams(chunks, run).launches:
        named = {each.name for each in launch.kernel.sizes}
        found = validate_code(launch.kernel, [{k: v for k, v in sizes.items() if k in named}], seeds=1)
        assert found.trials
        assert all(trial.right for trial in found.trials)


# -- wrong kernels ---------------------------------------------------------------------------------------------


def one_iteration_twice(runs: Runs, p: Int, tile: Int, depth: Int) -> tuple[Int, Int]:
    low, high = SHARE(runs, p, tile, depth)
    return low, high + 1


def chunks_of_the_next_run(runs: Runs, p: Int, tile: Int, depth: Int) -> tuple[Int, Int]:
    return SHARE(runs, p + 1, tile, depth)


def first_tile_of_the_next_run(runs: Runs, p: Int) -> Int:
    return FIRST(runs, p + 1)


SHARE, FIRST = Runs.share, Runs.first


@pytest.mark.share(8)
@pytest.mark.parametrize(
    ("name", "wrong"),
    [("share", one_iteration_twice), ("share", chunks_of_the_next_run), ("first", first_tile_of_the_next_run)],
)
def test_wrong_shares_are_not_proved(name: str, wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runs, name, wrong)
    assert not isinstance(verify_program(streams(3, 2), solver="z3").verdict, Proved)


# -- choice ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "config"),
    [
        ((512, 512, 16384), "parts_16"),
        ((1024, 1024, 8192), "parts_4"),
        ((128, 4096, 8192), "parts_8"),
        ((1280, 2048, 16384), "parts_3"),
        ((2560, 2560, 16384), "runs_2_of_3"),
        ((1024, 1024, 1024), None),
        ((8192, 8192, 8192), None),
        ((512, 514, 16384), None),
        ((512, 512, 16380), None),
    ],
    ids=str,
)
def test_k_is_divided_where_that_is_predicted_to_be_faster(shape: tuple[int, int, int], config: str | None) -> None:
    single = {n: e for n, e in CONFIGS.items() if isinstance(e, Cdna3 | Cdna3Interleaved | Cdna3PingPong)}
    best = microseconds(single[cheapest(single, *shape)], *shape)
    assert select_parts(*shape) == config
    assert config is None or microseconds_in_parts(CDNA3[config], *shape) < best
