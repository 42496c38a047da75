"""Split-K and stream-K of scaled 8-bit products on MI300X: formulas proved, right, no spills; no twin is proved."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16, float8_e4m3fnuz

from argus.core.ir import Map
from argus.core.proof.values import integer_sums
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.interp.programs import run_program
from argus.kernels import fp8_cdna3, streamk_scaled_cdna3
from argus.kernels.cost_gfx942 import microseconds, microseconds_in_parts
from argus.kernels.schedules import epilogues, stream_cdna3, stream_k
from argus.kernels.schedules.cdna3_interleaved import MOST_INTEGERS
from argus.kernels.schedules.stream_cdna3 import Cdna3Stream
from argus.kernels.streamk_scaled_cdna3 import CONFIGS, gemm_fp8_fnuz_streams, gemm_i8_scaled_streams
from argus.ops.choice_gfx942 import scaled
from argus.runtime.cpu.validate import chosen_sizes
from argus.runtime.machine.validate import validate_code
from argus.verifier.program import verify_program
from tests.kernels.twins import Edit, twin

UNBOUNDED = evolve(Budget(), runs=0)
CLAIMED = {
    gemm_fp8_fnuz_streams.name: "scale_a[0] * scale_b[0] * total(lambda k: A[i0, k] * B[i1, k], over=K)",
    gemm_i8_scaled_streams.name: "scale_a[i0] * scale_b[i1] * "
    "total(lambda k: scalar(A[i0, k]) * scalar(B[i1, k]), over=K)",
}
FAMILIES = {each.name: each for each in (gemm_fp8_fnuz_streams, gemm_i8_scaled_streams)}
INTEGERS = gemm_i8_scaled_streams.name
GIVES_UP = {(INTEGERS, "runs_2_of_3")}
"""Of which cvc5 does not decide a bound of a coordinate within its budget; z3 does."""
ALL = [(family, config) for family in FAMILIES for config in CONFIGS]


@pytest.mark.share(2660, among="K in parts on MI300X")
@pytest.mark.parametrize(("family", "config"), ALL)
def test_each_output_is_its_formula(family: str, config: str) -> None:
    verdict = verify_program(FAMILIES[family].trace(config), solver="z3", budget=UNBOUNDED).verdict

    assert isinstance(verdict, Proved), verdict
    assert CLAIMED[family] in verdict.results[1]


@pytest.mark.nightly
@pytest.mark.parametrize(("family", "config"), ALL)
def test_cvc5_proves_it(family: str, config: str) -> None:
    verdict = verify_program(FAMILIES[family].trace(config), solver="cvc5", budget=UNBOUNDED).verdict
    if (family, config) in GIVES_UP:
        assert isinstance(verdict, Unknown)
        assert "gave up" in verdict.reason
    else:
        assert isinstance(verdict, Proved), verdict


def whatever_i32_holds_of_one_sum(cfg: Cdna3Stream) -> int:
    del cfg
    return MOST_INTEGERS - 1


def is_never_one(stmt: Map) -> bool:
    del stmt
    return False


@pytest.mark.share(2660, among="K in parts on MI300X")
def test_sums_of_parts_may_not_reach_the_end_of_i32(monkeypatch: pytest.MonkeyPatch) -> None:
    """A K below 2^17 suffices for one sum, but parts together have K rounded up."""
    monkeypatch.setattr(streamk_scaled_cdna3, "longest_sum", whatever_i32_holds_of_one_sum)
    verdict = verify_program(gemm_i8_scaled_streams.trace("parts_4"), solver="z3", budget=UNBOUNDED).verdict
    assert isinstance(verdict, Unknown)
    assert "the sums in `total` fit i32" in verdict.reason


@pytest.mark.nightly
def test_running_sums_that_are_not_asked_to_fit_would_be_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutation that slips past without the obligation."""
    monkeypatch.setattr(streamk_scaled_cdna3, "longest_sum", whatever_i32_holds_of_one_sum)
    monkeypatch.setattr(integer_sums, "is_running_sum", is_never_one)
    verdict = verify_program(gemm_i8_scaled_streams.trace("parts_4"), solver="z3", budget=UNBOUNDED).verdict
    assert isinstance(verdict, Proved)


@pytest.mark.share(2660, among="K in parts on MI300X")
@pytest.mark.parametrize(("family", "config"), ALL)
def test_machine_code_spills_nothing_and_agrees_with_the_interpreter(family: str, config: str, tmp_path: Path) -> None:
    known = CONFIGS[config]
    sizes, runs = {"M": 131, "N": 140 if known.wide else 141, "K": 400}, known.runs
    tiles = ceil(sizes["M"] / runs.rows) * ceil(sizes["N"] / runs.columns)
    sizes |= {"P": ceil(tiles * known.chunks / known.run), "S": runs.max_tiles, "R": runs.rows, "W": runs.columns}
    sizes["depth"] = sizes["K"]
    for launch in FAMILIES[family].trace(config).launches:
        report = build(launch.kernel, directory=tmp_path).report
        assert isinstance(report, ResourceReport)
        assert (report.spills, report.scratch_bytes) == (False, 0)
        named = {each.name for each in launch.kernel.sizes}
        found = validate_code(launch.kernel, [{k: v for k, v in sizes.items() if k in named}], seeds=1)
        assert found.trials
        assert all(trial.right and trial.elements for trial in found.trials)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_validation_of_no_given_sizes_has_several_tiles(family: str) -> None:
    """What tiles of the workspace fix, their rows and columns, is no work that grows."""
    parts, total = (chosen_sizes(each.kernel) for each in FAMILIES[family].trace("parts_2").launches)
    assert any(each["M"] > each["R"] for each in parts)
    assert any(each["N"] > each["W"] for each in total)


@pytest.mark.share(2660, among="K in parts on MI300X")
@pytest.mark.parametrize("config", ["parts_4", "runs_2_of_3_any", "parts_3_any"])
def test_the_interpreter_computes_the_product(config: str) -> None:
    random, (m, n, k) = np.random.default_rng(0), (70, 132, 272)
    a, b = (random.integers(-2, 3, (rows, k)).astype(float8_e4m3fnuz) for rows in (m, n))
    given = {"A": a, "B": b, "C": np.zeros((m, n), bfloat16)}
    given |= {"scale_a": np.full(1, 0.5, np.float32), "scale_b": np.full(1, 4.0, np.float32)}
    found = run_program(gemm_fp8_fnuz_streams.trace(config), {"M": m, "N": n, "K": k}, given)

    assert found.violations == ()
    wanted = 2 * (a.astype(np.float32) @ b.astype(np.float32).T)
    assert np.array_equal(found.arrays["C"], wanted.astype(bfloat16))


def test_sums_of_integers_in_parts_are_exact() -> None:
    random, (m, n, k) = np.random.default_rng(0), (40, 72, 400)
    a, b = (random.integers(-128, 128, (rows, k), np.int8) for rows in (m, n))
    given = {"A": a, "B": b, "C": np.zeros((m, n), bfloat16)}
    given |= {"scale_a": np.ones(m, np.float32), "scale_b": np.full(n, 2.0**-10, np.float32)}
    found = run_program(gemm_i8_scaled_streams.trace("parts_3"), {"M": m, "N": n, "K": k}, given)

    assert found.violations == ()
    exact = a.astype(np.int64) @ b.T.astype(np.int64)
    wanted = exact.astype(np.float32) * np.float32(2.0**-10)
    assert np.array_equal(found.arrays["C"], wanted.astype(bfloat16))


EDITS: dict[str, tuple[ModuleType, Edit]] = {
    "a part is added twice": (stream_k, ("total += one", "total += one + one")),
    "the first part is left out": (stream_k, ("loop(first, last + 1,", "loop(first + 1, last + 1,")),
    "a part of another tile": (stream_k, ("part[(*z, p, t - runs.first(p))]", "part[(*z, p, 0)]")),
    "added before it is loaded": (stream_k, ("vmem.wait(0)\n        total", "vmem.wait(1)\n        total")),
    "scaled before the scales are loaded": (stream_k, ("vmem.wait(0)  # of the", "vmem.wait(1)  # of the")),
    "not scaled": (stream_k, ("copy(made().to(C.dtype)", "copy(total.to(C.dtype)")),
    "one scale alone": (epilogues, ("acc * reduce(mul, loaded)", "acc * loaded[0]")),
    "parts overlap": (stream_k, ("minimum(high * depth", "minimum((high + 1) * depth")),
    "one half of the columns twice": (stream_cdna3, ("len(sums)), (0, i))", "len(sums)), (0, 0))")),
}


BOTH = [(family, name) for family in FAMILIES for name in EDITS if (family, name) != (INTEGERS, "one scale alone")]


@pytest.mark.share(2660, among="K in parts on MI300X")
@pytest.mark.parametrize(("family", "name"), BOTH)
def test_a_twin_of_one_edit_is_not_proved(family: str, name: str) -> None:
    made = twin(FAMILIES[family], "runs_2_of_3", *EDITS[name])
    assert not isinstance(verify_program(made, solver="z3", budget=UNBOUNDED).verdict, Proved), name


@pytest.mark.parametrize(
    ("shape", "config"),
    [
        ((512, 512, 32768), "parts_16"),
        ((1024, 1024, 16384), "parts_4"),
        ((512, 513, 16384), "parts_8_any"),
        ((8192, 8192, 8192), None),
        ((40, 24, 48), None),
    ],
    ids=str,
)
def test_k_is_divided_where_that_is_predicted_to_be_faster(shape: tuple[int, int, int], config: str | None) -> None:
    """The model is of 16-bit elements, of which as many bytes are half as many."""
    m, n, k = shape
    found = scaled(*shape, scales="whole")
    assert found == scaled(*shape, scales="rows")
    assert (found if found in CONFIGS else None) == config
    if config is not None:
        time = microseconds_in_parts(CONFIGS[config], m, n, k // 2)
        assert all(time < microseconds(each, m, n, k // 2) for each in fp8_cdna3.CONFIGS.values())
