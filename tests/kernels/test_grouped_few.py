"""Grouped products of few rows of an expert: proved for all numbers of rows, their text computes it, twins are not."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels import grouped_few, grouped_few_fp8
from argus.kernels.schedules import grouped_few as schedule
from argus.kernels.schedules import grouped_few_blocks as schedule_fp8
from argus.language import Template, sm_90a
from argus.runtime.cpu.validate import validate
from argus.verifier.api import interpret
from argus.verifier.kernel import verify
from tests.kernels.twins import twin

PARTS = (grouped_few, grouped_few_fp8)
OF_NAME = {each.name: each for part in PARTS for each in vars(part).values() if isinstance(each, Template)}
ALL = [(name, config) for name, each in OF_NAME.items() for config in each.configs]
FIRST = ("packed_nt", "masked_nt", "packed_fp8_blocks")


@pytest.mark.share(6)
@pytest.mark.parametrize(
    ("name", "config"),
    [
        each if each[0] in FIRST and each[1] == "rows_16" else pytest.param(*each, marks=pytest.mark.nightly)
        for each in ALL
    ],
)
def test_every_configuration_is_proved(name: str, config: str) -> None:
    verdict = verify(OF_NAME[name], config=config, solver="z3", budget=evolve(Budget(), runs=0)).verdict

    assert isinstance(verdict, Proved), verdict
    assert {"I4", "I37", "I39"} <= dict(verdict.coverage).keys()
    promised, claimed = ("starts[i0]", "starts[b]") if name.startswith("packed") else ("counts[i0] <= R", "counts[i0]")
    assert any(promised in each and "contract on data" in each for each in verdict.assumptions)
    assert claimed in verdict.results[-1]


SIZES = {
    "packed": ({"M": 21, "K": 80, "E": 3, "N": 136, "R": 4}, {"M": 5, "K": 16, "E": 2, "N": 8, "R": 3}),
    "masked": ({"E": 3, "R": 10, "K": 80, "N": 136}, {"E": 2, "R": 3, "K": 16, "N": 8}),
}


def sizes_of(name: str) -> list[dict[str, int]]:
    found = SIZES[name.partition("_")[0]]
    if "fp8" not in name:
        return list(found)
    return [{**each, "K": 4 * each["K"], "KB": -(-each["K"] // 32), "NB": -(-each["N"] // 128)} for each in found]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "config"), ALL)
def test_the_text_agrees_with_the_interpreter(name: str, config: str) -> None:
    few = evolve(OF_NAME[name], target=evolve(sm_90a, processors=2))  # each block takes several tiles
    found = validate(few.trace(config), sizes_of(name), seeds=2)
    assert all(each.right and each.elements for each in found.trials), found


@pytest.mark.parametrize("counts", [[5, 0, 12], pytest.param([0, 9, 0, 1], marks=pytest.mark.nightly)])
@pytest.mark.parametrize("masked", [False, True])
def test_each_row_meets_its_own_expert_and_no_other_row_is_written(counts: list[int], masked: bool) -> None:
    random, experts, columns, depth, most = np.random.default_rng(0), len(counts), 72, 24, max(counts) + 1
    a = random.integers(-3, 4, (experts, most, depth)).astype(bfloat16)
    b = random.integers(-3, 4, (experts, columns, depth)).astype(bfloat16)
    here = np.arange(most) < np.array(counts)[:, None]
    wanted = np.einsum("erk,enk->ern", a.astype(np.float64), b.astype(np.float64)).astype(bfloat16)
    few, kind = evolve(sm_90a, processors=2), "masked" if masked else "packed"
    traced = evolve(OF_NAME[f"{kind}_nt"], target=few).trace("rows_8")
    if masked:
        c = np.full((experts, most, columns), np.nan).astype(bfloat16)
        found = interpret(traced, a, b, np.array(counts, np.int32), c, tags=False)["C"]
        assert np.isnan(found[~here].astype(np.float64)).all()
        found = found[here]
    else:
        starts = np.cumsum([0, *counts]).astype(np.int32)
        c = np.full((sum(counts), columns), np.nan).astype(bfloat16)
        found = interpret(traced, a[here], b, starts, c, tags=False)["C"]
    assert (found == wanted[here]).all()


MATRIX, ROWS, STORED = (
    "problem.of_expert(b, e)",
    "self.A.rows(scalar(self.starts[e]))",
    "self.C.rows(*ends_of(self.starts, e))",
)
SHARED: dict[str, tuple[str, str]] = {
    "the expert after": (MATRIX, "problem.of_expert(b, (e + 1) % b.shape[0])"),
    "the expert by the tile's column": (MATRIX, "problem.of_expert(b, n % b.shape[0])"),
    "the first expert": (MATRIX, "problem.of_expert(b, 0 * e)"),
    "the last rows are left out": ("ceil_div(count(e), cfg.bm), wide", "count(e) // cfg.bm, wide"),
    "the last columns are left out": ("wide = ceil_div(columns, cfg.bn)", "wide = columns // cfg.bn"),
    "the last part of K is left out": ("ceil_div(problem.B.shape[2], bk)", "problem.B.shape[2] // bk"),
    "columns of the tile after": ("(n, k)), getattr", "(n + 1, k)), getattr"),
    "another part of K": ("(n, k)), getattr", "(n, k + 1)), getattr"),
    "rows of the tile after": ("(m, k)), slot.a", "(m + 1, k)), slot.a"),
    "the sums of the tile before go on": ("init=eq(k, 0)", "init=eq(m, 0) & eq(k, 0)"),
    "each part is a sum of its own": ("init=eq(k, 0)", "init=eq(k, k)"),
    "stored to the columns after": ("(agents * n + wg, m)", "(agents * n + wg + 1, m)"),
    "stored to the rows after": ("(agents * n + wg, m)", "(agents * n + wg, m + 1)"),
    "a stage is released while it is read": ("wgmma.wait(pending=count)", "wgmma.wait(pending=2 * count)"),
    "sums are stored before they are complete": ("wgmma.wait(pending=0)", "pass"),
}
PACKED: dict[str, tuple[str, str]] = {
    "rows of the expert after": (ROWS, "self.A.rows(scalar(self.starts[e + 1]))"),
    "rows from one further": (ROWS, "self.A.rows(scalar(self.starts[e]) + 1)"),
    "a tile that is stored whole, into the expert after": (STORED, "self.C.rows(scalar(self.starts[e]))"),
    "a tile that is stored to one row too few": (
        STORED,
        "self.C.rows(scalar(self.starts[e]), scalar(self.starts[e + 1]) - 1)",
    ),
    "stored from the expert's number on": (STORED, "self.C.rows(e, scalar(self.starts[e + 1]))"),
    "an expert's last row is left out": ("return end - first", "return end - first - 1"),
    "experts from any row": ("first=0, last=rows", "last=rows"),
    "experts to any row": ("first=0, last=rows", "first=0"),
}
MASKED: dict[str, tuple[str, str]] = {
    "rows of the expert after": ("return self.A[e]", "return self.A[(e + 1) % self.A.shape[0]]"),
    "the number of the expert after": (
        "return scalar(self.counts[e])",
        "return scalar(self.counts[(e + 1) % self.counts.shape[0]])",
    ),
    "an expert's last row is left out": ("return scalar(self.counts[e])", "return scalar(self.counts[e]) - 1"),
    "stored to another expert": ("self.C[e].rows", "self.C[(e + 1) % self.C.shape[0]].rows"),
    "stored to one row too few": ("rows(0, scalar(self.counts[e]))", "rows(0, scalar(self.counts[e]) - 1)"),
    "stored from the second row on": ("rows(0, scalar(self.counts[e]))", "rows(1, scalar(self.counts[e]))"),
    "more rows than there are": (" & (count <= rows)", ""),
    "fewer than no rows": ("(count >= 0) & ", ""),
}
STORED_SCALE, SCALES = "problem.of_expert(scale_b, e)[n * bn // BLOCK, k]", "problem.of_expert(scale_b, e)"
FP8: dict[str, tuple[str, str]] = {
    "scales of the expert after": (SCALES, "problem.of_expert(scale_b, (e + 1) % scale_b.shape[0])"),
    "scales of the tile's columns": (STORED_SCALE, f"{SCALES}[n, k]"),
    "scales of the first columns": (STORED_SCALE, f"{SCALES}[0, k]"),
    "scales of the block after": (STORED_SCALE, f"{SCALES}[n * bn // BLOCK, k + 1]"),
    "row scales of the block after": ("scale_a, e, k).tile", "scale_a, e, k + 1).tile"),
    "row scales of the rows after": (".tile((bm,), (m,))", ".tile((bm,), (m + 1,))"),
    "row scales of the first rows": (".tile((bm,), (m,))", ".tile((bm,), (0,))"),
    "the first block's scales": ("fetch(k + 1)", "pass"),
    "scales two blocks on": ("fetch(k + 1)", "fetch(k + 2)"),
    "the next block's scales": (
        "factors = of_rows * of_columns  # overlaps with the wgmma, as do the loads of the next scales",
        "fetch(k + 1); factors = of_rows * of_columns",
    ),
    "the scale of rows alone": ("factors = of_rows * of_columns", "factors = of_rows * 1.0"),
    "the scale of columns alone": ("factors = of_rows * of_columns", "factors = 0.0 * of_rows + of_columns"),
    "scales squared": ("acc[:] = fma(part, factors, acc)", "acc[:] = fma(part, factors * factors, acc)"),
    "without scales": ("acc[:] = fma(part, factors, acc)", "acc[:] = acc + part"),
    "sums before they are there": ("wgmma.wait(0)", "pass"),
    "the sums of the tile before go on": ("acc[:] = 0.0", "pass"),
    "parts add up": ("slot.a, init=True)", "slot.a)"),
    "the last part of K is left out": ("ceil_div(K, BLOCK)\n    assume", "K // BLOCK\n    assume"),
}
TWINS = {
    **{f"{name}, packed": ("packed_nt", schedule, edit) for name, edit in (SHARED | PACKED).items()},
    **{f"{name}, masked": ("masked_nt", schedule, edit) for name, edit in MASKED.items()},
    **{f"{name}, fp8": ("packed_fp8_blocks", schedule_fp8, edit) for name, edit in FP8.items()},
    "row scales of the expert after, packed fp8": (
        "packed_fp8_blocks",
        schedule,
        ("factors[k].rows(scalar(self.starts[e]))", "factors[k].rows(scalar(self.starts[e + 1]))"),
    ),
    "row scales of the expert after, masked fp8": (
        "masked_fp8_blocks",
        schedule,
        ("return factors[e, k]", "return factors[(e + 1) % factors.shape[0], k]"),
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", TWINS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    of, module, edit = TWINS[name]
    made = twin(OF_NAME[of], "rows_16", module, edit)
    verdict = verify(made, solver="z3", budget=evolve(Budget(), runs=0)).verdict
    assert not isinstance(verdict, Proved)
