"""Grouped products on MI300X: proved for all numbers of rows, right in machine code, no spills; no twin is proved."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.kernels import grouped, grouped_fp8_cdna3
from argus.kernels.schedules import cdna3_blocks, cdna3_interleaved, grouped_cdna3
from argus.kernels.schedules import grouped as claims
from argus.language import Template, gfx942
from argus.runtime.cpu.validate import emitted
from argus.runtime.machine.launch import compiled, run_code
from argus.runtime.machine.validate import validate_code
from argus.verifier.api import interpret
from argus.verifier.kernel import verify
from benchmarks.grouped_inputs import grouped_inputs, sizes_of
from tests.kernels.test_grouped import EDITS as OF_THE_CLAIM
from tests.kernels.test_grouped import SIZES, SIZES_FP8, tiles_of
from tests.kernels.twins import Edit, twin

OF_NAME = {
    each.name: each
    for part in (grouped, grouped_fp8_cdna3)
    for each in vars(part).values()
    if isinstance(each, Template)
}
FNUZ = "grouped_fp8_fnuz_blocks"
ALL = [(name, n) for name, each in OF_NAME.items() for n, config in each.configs.items() if config.target == gfx942]
FIRST = ("grouped_nt", "interleaved_128")
UNBOUNDED = evolve(Budget(), runs=0)


@pytest.mark.share(3)
@pytest.mark.parametrize("solver", ["z3", pytest.param("cvc5", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("name", "config"), [each if each == FIRST else pytest.param(*each, marks=pytest.mark.nightly) for each in ALL]
)
def test_every_configuration_is_proved(name: str, config: str, solver: str) -> None:
    verdict = verify(OF_NAME[name], config=config, solver=solver, budget=UNBOUNDED).verdict

    assert isinstance(verdict, Proved), verdict
    assert not any("E*K*N <= 2147483640" in each or "E*K*N <= 4294967280" in each for each in verdict.assumptions)
    assert {"I4", "I5", "I27", "I28", "I37", "I39"} <= dict(verdict.coverage).keys()
    assert any("starts[tile_experts[i0]] <= tile_starts[i0]" in each for each in verdict.assumptions)
    assert "starts[b]" in verdict.results[-1]


@pytest.mark.share(168, among="registers on gfx942")
@pytest.mark.parametrize(("name", "config"), ALL)
def test_sums_stay_in_registers(name: str, config: str, tmp_path: Path) -> None:
    report = build(OF_NAME[name].trace(config), directory=tmp_path).report

    assert isinstance(report, ResourceReport)
    assert (report.vgpr_spills, report.sgpr_spills, report.scratch_bytes) == (0, 0, 0)
    assert report.lds_bytes <= gfx942.shared_bytes


def in_loops(assembly: str) -> list[str]:
    """The instructions of basic blocks that the compiler says are in a loop, without those of guards."""
    found, inside = list[str](), False
    for line in assembly.partition("_guard0")[0].splitlines():
        if line.startswith((".LBB", "; %bb.")):
            inside = "Loop" in line
        if inside:
            found.append(line)
    return found


@pytest.mark.share(168, among="registers on gfx942")
@pytest.mark.parametrize(("name", "config"), ALL)
def test_loops_load_integers_by_scalar_instructions_at_most(name: str, config: str, tmp_path: Path) -> None:
    assembly = build(OF_NAME[name].trace(config), directory=tmp_path).assembly
    assert assembly is not None
    lines = in_loops(assembly.read_text("utf-8"))
    assert any("v_mfma" in line for line in lines)
    single = [line for line in lines if re.search(r"\bglobal_load_dword\s", line)]
    assert len(single) <= (name == FNUZ), single  # the scale of a block of B


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "config"), ALL)
def test_machine_code_agrees_with_the_interpreter(name: str, config: str) -> None:
    sizes = SIZES_FP8 if name == FNUZ else SIZES
    if config == "interleaved_64":  # few enough rows for so many tiles
        sizes = [{**each, "M": min(each["M"], 40 + 10 * each["T"])} for each in sizes]
    found = validate_code(OF_NAME[name].trace(config), sizes, seeds=2)
    assert all(each.right and each.elements for each in found.trials), found


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("config", ["interleaved_64", "interleaved_128"])
def test_machine_code_of_random_numbers_of_rows_is_right(config: str, seed: int) -> None:
    random, kernel = np.random.default_rng(seed), OF_NAME["grouped_nt"].trace(config)
    rows, experts = int(random.integers(1, 400)), int(random.integers(1, 9))
    height = OF_NAME["grouped_nt"].configs[config].bm
    sizes = sizes_of(rows, experts, 8 * int(random.integers(1, 30)), 8 * int(random.integers(1, 30)), height)
    arrays = grouped_inputs(kernel, sizes, height, seed)
    for name in "AB":  # of which sums are exact
        arrays[name] = random.integers(-3, 4, arrays[name].shape).astype(bfloat16)
    text = emitted(kernel)
    found, done = run_code(compiled(kernel, text.text, text.info), kernel, sizes, arrays, seed)

    assert not done.findings
    of_rows = arrays["B"].astype(np.float64)[np.repeat(np.arange(experts), np.diff(arrays["starts"]))]
    wanted = np.einsum("rk,rnk->rn", arrays["A"].astype(np.float64), of_rows)
    assert np.array_equal(found["C"], wanted.astype(bfloat16))


@pytest.mark.share(4)
@pytest.mark.parametrize("counts", [[5, 0, 145], [0, 129, 0, 1]], ids=str)
def test_each_row_meets_its_own_expert(counts: list[int]) -> None:
    random, rows, columns, depth = np.random.default_rng(0), sum(counts), 136, 72
    a = random.integers(-3, 4, (rows, depth)).astype(bfloat16)
    b = random.integers(-3, 4, (len(counts), columns, depth)).astype(bfloat16)
    integers = tiles_of(counts, 128)
    c = np.full((rows, columns), np.nan).astype(bfloat16)
    found = interpret(OF_NAME["grouped_nt"].trace("interleaved_128"), a, b, *integers.values(), c, tags=False)["C"]

    experts = np.repeat(np.arange(len(counts)), counts)
    wanted = np.einsum("rk,rnk->rn", a.astype(np.float64), b.astype(np.float64)[experts])
    assert (found == wanted.astype(bfloat16)).all()


OF_HOPPER = {
    *("the last part of K is left out", "columns of the tile after", "both warpgroups store the first's rows"),
    "a box is read before it is written",
}
SHARED = {name: (claims, edit) for name, edit in OF_THE_CLAIM.items() if name not in OF_HOPPER}
STORED = "problem.result(t), len(acc) * n + i)\n    problem.finish()"
OWN: dict[str, tuple[ModuleType, Edit]] = {
    "experts counted from the last": (
        claims,
        ("matrices[scalar(self.tile_experts[t])]", "matrices[matrices.shape[0] - 1 - scalar(self.tile_experts[t])]"),
    ),
    "the expert after, where there is one": (
        claims,
        (
            "matrices[scalar(self.tile_experts[t])]",
            "matrices[minimum(scalar(self.tile_experts[t]) + 1, matrices.shape[0] - 1)]",
        ),
    ),
    "the last part of K is left out": (
        grouped_cdna3,
        ("ceil_div(A.shape[1], cfg.bk), scales", "A.shape[1] // cfg.bk, scales"),
    ),
    "the first part of K is left out": (
        grouped_cdna3,
        ("        acc = operands.multiply((0, n), 0", "        acc = operands.multiply((0, n), 1"),
    ),
    "columns of the tile after": (
        grouped_cdna3,
        ("        acc = operands.multiply((0, n)", "        acc = operands.multiply((0, n + 1)"),
    ),
    "columns by the tile's number": (
        grouped_cdna3,
        ("        acc = operands.multiply((0, n)", "        acc = operands.multiply((0, t)"),
    ),
    "rows of a tile one tile further": (
        grouped_cdna3,
        ("        acc = operands.multiply((0, n)", "        acc = operands.multiply((1, n)"),
    ),
    "one half of the columns twice": (grouped_cdna3, (STORED, STORED.replace("n + i", "n"))),
    "halves of the columns exchanged": (grouped_cdna3, (STORED, STORED.replace("n + i", "n + 1 - i"))),
    "the tile before is stored": (grouped_cdna3, (STORED, STORED.replace("result(t)", "result(t - t % 2)"))),
    "operands of the tile before": (
        grouped_cdna3,
        ("problem.operands(t)\n        operands, scales", "problem.operands(t - t % 2)\n        operands, scales"),
    ),
    "weights that a descriptor does not span": (
        cdna3_interleaved,
        ("global_load if each.far else buffer_load", "buffer_load"),
    ),
    "overwritten while read": (
        cdna3_interleaved,
        ("            sync()  # the whole tile is in registers\n", ""),
    ),
    "loads not waited for": (cdna3_interleaved, ("        vmem.wait(0)\n        _store", "        _store")),
}
TWINS = {**SHARED, **OWN}


@pytest.mark.nightly
@pytest.mark.parametrize("name", TWINS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    module, edit = TWINS[name]
    made = twin(OF_NAME["grouped_nt"], "interleaved_128", module, edit)
    verdict = verify(made, solver="z3", budget=Budget.about(0.1)).verdict
    assert not isinstance(verdict, Proved)


SCALES: dict[str, tuple[ModuleType, Edit]] = {
    "scales of the next block of K": (cdna3_blocks, ("of_rows(k)", "of_rows(k + 1)")),
    "scales of the tile's first row in the expert": (grouped_cdna3, ("of_a[k].rows(first)", "of_a[k]")),
    "rows' scales of the tile after": (grouped_cdna3, ("problem.tile_starts[t]", "problem.tile_starts[t + 1]")),
    "rows' scales from one further": (grouped_cdna3, ("of_a[k].rows(first)", "of_a[k].rows(first + 1)")),
    "scales of the expert of the tile before": (grouped_cdna3, ("tile_experts[t]", "tile_experts[t - t % 2]")),
    "scales of the first expert": (grouped_cdna3, ("of_b[e]", "of_b[0]")),
    "columns' scale of the block beside": (cdna3_blocks, ("n * blocks + i, k]", "n * blocks + i + 1, k]")),
    "columns' scale by the tile's number": (grouped_cdna3, ("of_b[e], (0, n)", "of_b[e], (0, t)")),
    "added without the factor": (cdna3_blocks, ("fma(part, scale, acc)", "acc + part")),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", SCALES)
def test_a_twin_with_other_scales_is_not_proved(name: str) -> None:
    module, edit = SCALES[name]
    made = twin(OF_NAME[FNUZ], "interleaved_128", module, edit)
    assert not isinstance(verify(made, solver="z3", budget=Budget.about(0.1)).verdict, Proved)
