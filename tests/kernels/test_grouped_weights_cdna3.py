"""Gradients of experts' matrices on MI300X: proved, right in machine code beside rows of NaN; twins are not."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.kernels.grouped_weights import CONFIGS, FAMILIES
from argus.kernels.schedules import cdna3_interleaved, grouped_weights_claims
from argus.kernels.schedules import grouped_weights_cdna3 as schedule
from argus.language import bf16, f16, gfx942
from argus.runtime.cpu.validate import emitted
from argus.runtime.machine.launch import compiled, run_code
from argus.verifier.kernel import verify
from argus.verifier.program import verify_program
from tests.kernels.test_grouped_weights import Array, beside_nan
from tests.kernels.twins import Edit, twin

NO_RUNS = evolve(Budget(), runs=0)
OWN = [name for name, each in CONFIGS.items() if each.target == gfx942]
ALL = [(dtype, config) for dtype in FAMILIES for config in OWN]
FIRST = (bf16, "interleaved_128")


@pytest.mark.parametrize("solver", ["z3", pytest.param("cvc5", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("dtype", "config"),
    [
        pytest.param(
            *each, marks=pytest.mark.share(20, among="weights of groups") if each == FIRST else pytest.mark.nightly
        )
        for each in ALL
    ],
)
def test_every_configuration_is_proved(dtype: Any, config: str, solver: Any) -> None:  # noqa: ANN401 reason: names
    verdict = verify_program(FAMILIES[dtype].trace(config), solver=solver, budget=NO_RUNS).verdict

    assert isinstance(verdict, Proved), verdict
    assert verdict.results[-1].startswith("assert_equals(D, lambda i0, i1, i2: total(lambda r: X[r, i1] * G[r, i2]")
    assert {"I4", "I5", "I28", "I30", "I37", "I39"} <= dict(verdict.coverage).keys()


@pytest.mark.share(168, among="registers on gfx942")
@pytest.mark.parametrize(("dtype", "config"), ALL)
def test_sums_stay_in_registers(dtype: Any, config: str, tmp_path: Path) -> None:  # noqa: ANN401 reason: a type
    (launch,) = FAMILIES[dtype].trace(config).launches
    report = build(launch.kernel, directory=tmp_path).report
    assert isinstance(report, ResourceReport)
    assert (report.vgpr_spills, report.sgpr_spills, report.scratch_bytes) == (0, 0, 0)


def in_machine_code(kernel: Kernel, x: Array, g: Array, starts: Array, seed: int) -> Array:
    """The matrices that a launch leaves where there were no numbers."""
    experts, high, wide = starts.size - 1, x.shape[1], g.shape[1]
    sizes = {"M": x.shape[0], "K": high, "N": wide, "E": experts, "R": experts + 1}
    arrays = {"X": x, "G": g, "starts": starts, "D": np.full((experts, high, wide), np.nan, x.dtype)}
    text = emitted(kernel)
    found, done = run_code(compiled(kernel, text.text, text.info), kernel, sizes, arrays, seed)
    assert not done.findings
    return found["D"]


def right_beside_others(kernel: Kernel, counts: list[int], high: int, wide: int) -> bool:
    """Whether each expert's matrix is that of its own rows, while all others hold NaN and infinities."""
    right = True
    for own in range(len(counts)):
        x, g, starts, wanted = beside_nan(counts, own, high, wide)
        right &= bool(np.array_equal(in_machine_code(kernel, x, g, starts, own)[own], wanted))
    return right


@pytest.mark.parametrize("config", [pytest.param(each, marks=pytest.mark.nightly) for each in OWN])
@pytest.mark.parametrize("counts", [[5, 0, 145], [0, 129, 0, 1], [64, 128], [0, 0, 7]], ids=str)
def test_neighbours_do_not_matter(counts: list[int], config: str) -> None:
    (launch,) = FAMILIES[f16].trace(config).launches
    assert right_beside_others(launch.kernel, counts, 136, 264)


ENDS = "X.rows(first, end).mT, (G.rows(first, end).mT,)"
ONE_ENDS = {
    "rows of the first factor alone end": "X.rows(first, end).mT, (G.rows(first).mT,)",
    "rows of the second factor alone end": "X.rows(first).mT, (G.rows(first, end).mT,)",
}
"""Equal over the real numbers, where 0 times anything is 0; 0 times a neighbour's NaN is not."""


@pytest.mark.share(20, among="weights of groups")
@pytest.mark.parametrize("name", ONE_ENDS)
def test_a_neighbour_matters_where_one_factor_ends(name: str) -> None:
    (launch,) = twin(FAMILIES[f16], "interleaved_128", schedule, (ENDS, ONE_ENDS[name])).launches
    verdict = verify(launch.kernel, solver="z3", budget=NO_RUNS).verdict
    assert isinstance(verdict, Unknown), verdict
    assert "which is not 0 if it holds NaN" in str(verdict.reason)
    assert not right_beside_others(launch.kernel, [5, 4], 16, 24)
    (own,) = FAMILIES[f16].trace("interleaved_128").launches
    assert right_beside_others(own.kernel, [5, 4], 16, 24)


EDITS: dict[str, tuple[ModuleType, Edit]] = {
    "no factor ends": (schedule, (ENDS, "X.rows(first).mT, (G.rows(first).mT,)")),
    "rows of the expert after": (
        schedule,
        ("ends_of(starts, e)", "ends_of(starts, minimum(e + 1, experts - 1))"),
    ),
    "rows end one early": (schedule, (ENDS, ENDS.replace("first, end", "first, end - 1"))),
    "rows end one late": (schedule, (ENDS, ENDS.replace("first, end", "first, end + 1"))),
    "rows from one further": (schedule, (ENDS, ENDS.replace("first, end", "first + 1, end"))),
    "the first factor ends one later": (schedule, (ENDS, ENDS.replace("X.rows(first, end)", "X.rows(first, end + 1)"))),
    "the second factor ends one later": (
        schedule,
        (ENDS, ENDS.replace("G.rows(first, end)", "G.rows(first, end + 1)")),
    ),
    "one factor from one further": (schedule, (ENDS, ENDS.replace("X.rows(first", "X.rows(first + 1"))),
    "one factor twice": (schedule, (ENDS, ENDS.replace("G.", "X."))),
    "the last block is left out": (schedule, ("ceil_div(end - first, cfg.bk)", "(end - first) // cfg.bk")),
    "the first block is left out": (schedule, ("multiply((i, j), 0, blocks)", "multiply((i, j), 1, blocks)")),
    "rows of all experts": (schedule, ("minimum(ceil_div(end - first, cfg.bk), ceil_div(rows, cfg.bk))", "rows // 64")),
    "columns of the tile after": (schedule, ("multiply((i, j)", "multiply((i, j + 1)")),
    "rows of the result by columns": (schedule, ("multiply((i, j)", "multiply((j, i)")),
    "halves of the columns exchanged": (schedule, ("len(acc) * j + half", "len(acc) * j + 1 - half")),
    "one half of the columns twice": (schedule, ("len(acc) * j + half", "len(acc) * j")),
    "stored to the expert before": (schedule, ("tile = D[e]", "tile = D[minimum(e, experts - 2)]")),
    "the last tile of columns is left out": (schedule, ("ceil_div(wide, cfg.bn), experts", "wide // cfg.bn, experts")),
    "the last expert is left out": (schedule, ("cfg.bn), experts", "cfg.bn), experts - 1")),
    "matrices that a descriptor does not span": (schedule, ("    assume_descriptors(X, G)\n", "")),
    "experts in any order": (
        grouped_weights_claims,
        ("promise(starts, ascending=True, first=0, last=rows)", "promise(starts, first=0, last=rows)"),
    ),
    "the first expert begins anywhere": (
        grouped_weights_claims,
        ("ascending=True, first=0, last=rows)", "ascending=True, last=rows)"),
    ),
    "overwritten while read": (cdna3_interleaved, ("            sync()  # the whole tile is in registers\n", "")),
    "loads not waited for": (cdna3_interleaved, ("        vmem.wait(0)\n        _store", "        _store")),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    made = twin(FAMILIES[bf16], "interleaved_128", *EDITS[name])
    assert not isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved), name
