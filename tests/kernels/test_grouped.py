"""Grouped products: proved for all numbers of rows, their text computes what the interpreter does, twins are not."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels import grouped, grouped_fp8
from argus.kernels.schedules import epilogues, grouped_blocks
from argus.kernels.schedules import grouped as schedule
from argus.language import Template, sm_90a
from argus.runtime.cpu.validate import validate
from argus.verifier.api import interpret
from argus.verifier.kernel import verify
from tests.kernels.twins import Edit, twin

OF_NAME = {
    each.name: each for part in (grouped, grouped_fp8) for each in vars(part).values() if isinstance(each, Template)
}
FP8, FP8_ROWS = "grouped_fp8_blocks", "grouped_fp8_rows"
ALL = [(name, n) for name, each in OF_NAME.items() for n, config in each.configs.items() if config.target == sm_90a]
FIRST = ("grouped_nt", "columns_256")


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("name", "config"), [each if each == FIRST else pytest.param(*each, marks=pytest.mark.nightly) for each in ALL]
)
def test_every_configuration_is_proved(name: str, config: str) -> None:
    verdict = verify(OF_NAME[name], config=config, solver="z3", budget=evolve(Budget(), runs=0)).verdict

    assert isinstance(verdict, Proved), verdict
    assert {"I4", "I27", "I37", "I39"} <= dict(verdict.coverage).keys()
    assert any("starts[tile_experts[i0]] <= tile_starts[i0]" in each for each in verdict.assumptions)
    assert "starts[b]" in verdict.results[-1]


SIZES = (
    {"M": 150, "K": 72, "E": 1, "N": 264, "R": 2, "S": 3, "T": 2},
    {"M": 130, "K": 80, "E": 2, "N": 24, "R": 3, "S": 4, "T": 3},
    {"M": 5, "K": 8, "E": 3, "N": 8, "R": 4, "S": 4, "T": 3},
)


SIZES_FP8 = tuple(
    {**each, "K": 2 * each["K"], "KB": -(-2 * each["K"] // 128), "NB": -(-each["N"] // 128)} for each in SIZES[1:]
)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "config"), ALL)
def test_the_text_agrees_with_the_interpreter(name: str, config: str) -> None:
    few = evolve(OF_NAME[name], target=evolve(sm_90a, processors=2))  # each block takes several tiles
    found = validate(few.trace(config), SIZES_FP8 if name in (FP8, FP8_ROWS) else SIZES, seeds=2)
    assert all(each.right and each.elements for each in found.trials), found


def tiles_of(counts: list[int], height: int) -> dict[str, np.ndarray[Any, Any]]:
    """Offsets of experts with so many rows, and their tiles with some of no rows at the end."""
    starts = np.cumsum([0, *counts])
    tiles = [(e, r) for e, count in enumerate(counts) for r in range(starts[e], starts[e] + count, height)]
    experts = [e for e, _ in tiles] + [len(counts) - 1] * 2
    firsts = [r for _, r in tiles] + [starts[-1]] * 3
    named = {"starts": starts, "tile_starts": np.array(firsts), "tile_experts": np.array(experts)}
    return {name: each.astype(np.int32) for name, each in named.items()}


@pytest.mark.nightly
@pytest.mark.parametrize("counts", [[5, 0, 145], [0, 129, 0, 1], [128], [0, 0, 7]])
def test_each_row_meets_its_own_expert(counts: list[int]) -> None:
    random, rows, columns, depth = np.random.default_rng(0), sum(counts), 264, 72
    a = random.integers(-3, 4, (rows, depth)).astype(bfloat16)
    b = random.integers(-3, 4, (len(counts), columns, depth)).astype(bfloat16)
    integers = tiles_of(counts, 128)
    c = np.full((rows, columns), np.nan).astype(bfloat16)
    found = interpret(OF_NAME["grouped_nt"].trace("columns_256"), a, b, *integers.values(), c, tags=False)["C"]

    experts = np.repeat(np.arange(len(counts)), counts)
    wanted = np.einsum("rk,rnk->rn", a.astype(np.float64), b.astype(np.float64)[experts])
    assert (found == wanted.astype(bfloat16)).all()


EDITS: dict[str, tuple[str, str]] = {
    "the expert after": (
        "matrices[scalar(self.tile_experts[t])]",
        "matrices[(scalar(self.tile_experts[t]) + 1) % matrices.shape[0]]",
    ),
    "the expert of the tile before": (
        "matrices[scalar(self.tile_experts[t])]",
        "matrices[scalar(self.tile_experts[t - t % 2])]",
    ),
    "the expert by the tile's number": ("matrices[scalar(self.tile_experts[t])]", "matrices[t % matrices.shape[0]]"),
    "rows of the tile after": (
        "self.A.rows(scalar(self.tile_starts[t]))",
        "self.A.rows(scalar(self.tile_starts[t + 1]))",
    ),
    "rows from one further": (
        "self.A.rows(scalar(self.tile_starts[t]))",
        "self.A.rows(scalar(self.tile_starts[t]) + 1)",
    ),
    "rows of the expert from its first on": (
        "self.A.rows(scalar(self.tile_starts[t]))",
        "self.A.rows(scalar(self.starts[scalar(self.tile_experts[t])]))",
    ),
    "a tile that is stored whole, into the expert after": (
        "self.C.rows(*ends_of(self.tile_starts, t))",
        "self.C.rows(scalar(self.tile_starts[t]))",
    ),
    "a tile that is stored to the end of its expert": (
        "self.C.rows(*ends_of(self.tile_starts, t))",
        "self.C.rows(scalar(self.tile_starts[t]), scalar(self.starts[scalar(self.tile_experts[t]) + 1]))",
    ),
    "tiles of one row are left out": ("return when(first < end)", "return when(first + 1 < end)"),
    "tiles of the first expert with rows are left out": (
        "return when(first < end)",
        "return when((0 < first) & (first < end))",
    ),
    "the last part of K is left out": ("depth = ceil_div(A.shape[1], bk)", "depth = A.shape[1] // bk"),
    "columns of the tile after": ("(n, k)), slot.b", "(n + 1, k)), slot.b"),
    "both warpgroups store the first's rows": ("(wg, n), boxes[wg]", "(0, n), boxes[wg]"),
    "a box is read before it is written": ("sync()  # the box is written", "pass  # the box is written"),
    "more rows than a tile has": (", most=self.bm)", ")"),
    "experts in any order": ("self.starts, ascending=True", "self.starts"),
    "tiles in any order": ("self.tile_starts, ascending=True", "self.tile_starts"),
    "tiles to any row": ("last=rows, most=self.bm", "most=self.bm"),
    "tiles of two experts": (" & (last <= end)", ""),
    "tiles from before their expert": (" & (start <= first)", ""),
    "experts that there are not": (" & (e < self.B.shape[0])", ""),
    "experts before the first": ("(e >= 0) & ", ""),
    "weights beyond 64 bits of address": (", experts * columns * depth < 1 << 40)", ")"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    made = twin(OF_NAME["grouped_nt"], "columns_256", schedule, EDITS[name])
    verdict = verify(made, solver="z3", budget=evolve(Budget(), runs=0)).verdict
    assert not isinstance(verdict, Proved)


EDITS_ROWS: dict[str, tuple[ModuleType, Edit]] = {
    "scales of the rows of the tile after": (
        schedule,
        ("of_a.rows(scalar(self.tile_starts[t]))", "of_a.rows(scalar(self.tile_starts[t + 1]))"),
    ),
    "scales of the first rows": (schedule, ("of_a.rows(scalar(self.tile_starts[t]))", "of_a.rows(0 * t)")),
    "scales of the expert after": (
        schedule,
        ("of_b[scalar(self.tile_experts[t])]", "of_b[(scalar(self.tile_experts[t]) + 1) % self.B.shape[0]]"),
    ),
    "scales of the first expert": (schedule, ("of_b[scalar(self.tile_experts[t])]", "of_b[0 * t]")),
    "sums are not scaled": (
        schedule,
        ("if self.scales is None or not self.scales_rows:", "if self.scales is not None or not self.scales_rows:"),
    ),
    "scales of columns are left out": (epilogues, ("acc.to(f32) * rows * columns", "acc.to(f32) * rows")),
    "scales of rows are left out": (epilogues, ("acc.to(f32) * rows * columns", "acc.to(f32) * columns")),
    "scales of columns apply twice": (epilogues, ("* rows * columns", "* rows * columns * columns")),
    "scales of the columns of another part": (
        epilogues,
        (
            "fetch(source.tile((acc.shape[axis],), (at[axis],)), held)",
            "fetch(source.tile((acc.shape[axis],), (at[0],)), held)",
        ),
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", EDITS_ROWS)
def test_a_twin_with_other_scales_is_not_proved(name: str) -> None:
    module, edit = EDITS_ROWS[name]
    made = twin(OF_NAME[FP8_ROWS], "columns_256", module, edit)
    verdict = verify(made, solver="z3", budget=evolve(Budget(), runs=0)).verdict
    assert not isinstance(verdict, Proved)


EDITS_BLOCKS: dict[str, Edit] = {
    "scales of another expert": ("scale_b[e, block, k]", "scale_b[e - e % 2, block, k]"),
    "scales of the columns of the first piece": (
        "zip(blocks_of(n, cfg.bn), of_columns",
        "zip([n for _ in of_columns], of_columns",
    ),
    "scales of the block of K before": ("fetch(k + 1)", "fetch(k)"),
    "scales of rows of the tile after": (
        "first, e = scalar(problem.tile_starts[t])",
        "first, e = scalar(problem.tile_starts[t + 1])",
    ),
    "scales of the other warpgroup's rows": ("tile((_ROWS,), (wg,)), of_rows", "tile((_ROWS,), (1 - wg,)), of_rows"),
    "a stage is released before it is read": (
        "wgmma.wait(0)\n                    ring.release()",
        "ring.release()\n                    wgmma.wait(0)",
    ),
    "parts in each other's place": ("at[1] * count + j", "at[1] * count + count - 1 - j"),
    "sums of the tile before are kept": ("sums.clear()", "pass"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", EDITS_BLOCKS)
def test_a_twin_with_scales_of_blocks_is_not_proved(name: str) -> None:
    made = twin(OF_NAME[FP8], "columns_192", grouped_blocks, EDITS_BLOCKS[name])
    verdict = verify(made, solver="z3", budget=evolve(Budget(), runs=0)).verdict
    assert not isinstance(verdict, Proved)
