"""Gradients of experts' matrices: proved for all numbers of rows, right beside rows of NaN; twins are not proved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from argus.core.ir import Kernel, Program
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.interp.interpret import interpret_program
from argus.kernels.grouped_weights import CONFIGS, FAMILIES
from argus.kernels.schedules import grouped_weights as schedule
from argus.kernels.schedules import grouped_weights_claims as claims
from argus.language import bf16, f16, sm_90a
from argus.runtime.cpu.validate import validate
from argus.verifier.program import verify_program
from tests.kernels.twins import twin

NO_RUNS = evolve(Budget(), runs=0)
OF_HOPPER = [name for name, each in CONFIGS.items() if each.target == sm_90a]
ALL = [(dtype, config) for dtype in FAMILIES for config in OF_HOPPER]
FIRST = (bf16, "columns_256")
Array = np.ndarray[Any, Any]


@pytest.mark.share(20, among="weights of groups")
@pytest.mark.parametrize(
    ("dtype", "config"), [each if each == FIRST else pytest.param(*each, marks=pytest.mark.nightly) for each in ALL]
)
def test_every_configuration_is_proved(dtype: Any, config: str) -> None:  # noqa: ANN401 reason: the language exports no class
    verdict = verify_program(FAMILIES[dtype].trace(config), solver="z3", budget=NO_RUNS).verdict

    assert isinstance(verdict, Proved), verdict
    assert verdict.results[-1].startswith("assert_equals(D, lambda i0, i1, i2: total(lambda r: X[r, i1] * G[r, i2]")
    assert any("contract on data" in each for each in verdict.assumptions)


def few(program: Program) -> Program:
    """The program on two processors, so that each block takes several tiles."""
    launches = tuple(evolve(each, kernel=_on_two(each.kernel)) for each in program.launches)
    return evolve(program, launches=launches)


def _on_two(kernel: Kernel) -> Kernel:
    return evolve(kernel, target=evolve(sm_90a, processors=2))


def beside_nan(counts: list[int], own: int, high: int, wide: int) -> tuple[Array, Array, Array, Array]:
    """X and G, where all rows but those of an expert hold NaN and infinities; starts; and the expert's matrix."""
    random, starts = np.random.default_rng(own), np.cumsum([0, *counts]).astype(np.int32)
    x, g = (random.integers(-3, 4, (starts[-1], width)).astype(np.float16) for width in (high, wide))
    rows = slice(starts[own], starts[own + 1])
    for each in (x, g):
        kept = each[rows].copy()
        each[:], each[::2] = np.nan, np.inf
        each[rows] = kept
    return x, g, starts, (x[rows].astype(np.float64).T @ g[rows].astype(np.float64)).astype(np.float16)


@pytest.mark.nightly
@pytest.mark.parametrize("config", OF_HOPPER)
@pytest.mark.parametrize("counts", [[5, 0, 145], [0, 129, 0, 1], [64, 128], [0, 0, 7]], ids=str)
def test_neighbours_do_not_matter(counts: list[int], config: str) -> None:
    """Each expert's rows but those of one hold NaN and infinities: its gradient is still that of its own rows."""
    for own in range(len(counts)):
        x, g, starts, wanted = beside_nan(counts, own, 136, 264)
        d = np.full((len(counts), *wanted.shape), 7, np.float16)
        found = interpret_program(FAMILIES[f16].trace(config), x, g, starts, d)["D"]
        assert np.array_equal(found[own], wanted)


SIZES = (
    {"M": 150, "K": 136, "N": 264, "E": 2, "R": 3},
    {"M": 70, "K": 8, "N": 16, "E": 3, "R": 4},
    {"M": 200, "K": 24, "N": 520, "E": 1, "R": 2},
)


@pytest.mark.nightly
@pytest.mark.parametrize(("dtype", "config"), ALL)
def test_the_text_agrees_with_the_interpreter(dtype: Any, config: str) -> None:  # noqa: ANN401 reason: as above
    for launch in few(FAMILIES[dtype].trace(config)).launches:
        found = validate(launch.kernel, SIZES, seeds=2)
        assert all(each.right and each.elements for each in found.trials), found


EDITS: dict[str, tuple[str, str]] = {
    "rows of a neighbour are copied": (
        "own = where(held.index[0] < end - start, held, 0.0)",
        "own = where(held.index[0] < 64 - 0 * start, held, 0.0)",
    ),
    "the first row of a neighbour is copied": ("held.index[0] < end - start", "held.index[0] <= end - start"),
    "an expert's last row is not copied": ("held.index[0] < end - start", "held.index[0] < end - start - 1"),
    "one tensor's rows are not masked": (
        "copy(own, made[e].tile",
        "copy(own if given is self.X else held, made[e].tile",
    ),
    "ones behind the last rows": ("end - start, held, 0.0)", "end - start, held, 1.0)"),
    "the last rows of the expert after": (
        "first, end = ends_of(self.starts, e)\n        start",
        "first, end = ends_of(self.starts, minimum(e + 1, self.experts - 1))\n        start",
    ),
    "copies of the expert after": (
        "of_x[e].mT.tile",
        "of_x[minimum(e + 1, self.experts - 1)].mT.tile",
    ),
    "one factor's copies of the first expert": ("of_g[e].mT.tile", "of_g[0 * e].mT.tile"),
    "rows of the expert after": (
        "first, _ = ends_of(self.starts, e)",
        "first, _ = ends_of(self.starts, minimum(e + 1, self.experts - 1))",
    ),
    "rows from one further": ("x, g = self.X.rows(first).mT", "x, g = self.X.rows(first + 1).mT"),
    "rows from a whole block on": ("self.X.rows(first).mT", "self.X.rows(first // BLOCK * BLOCK).mT"),
    "one factor from a whole block on": ("self.G.rows(first).mT", "self.G.rows(first // BLOCK * BLOCK).mT"),
    "copies from a whole block on": (
        "start = first + BLOCK * self.before_last(e)",
        "start = end // BLOCK * BLOCK",
    ),
    "a whole last block is left to no one": (
        "for k in loop(minimum(self.before_last(e), most)):",
        "for k in loop(minimum(self.before_last(e), most) - 1):",
    ),
    "whole blocks of one row more": ("maximum(0, end - first - 1) // BLOCK", "maximum(0, end - first + 1) // BLOCK"),
    "the last whole block is left out": (
        "maximum(0, end - first - 1) // BLOCK",
        "maximum(0, end - first - 1 - BLOCK) // BLOCK",
    ),
    "one more block, with rows of a neighbour": ("maximum(0, end - first - 1) // BLOCK", "(end - first) // BLOCK + 1"),
    "the last rows are left out": (
        "                    last.release()",
        "                    last.release()\n                    acc[:] = 0.0",
    ),
    "last rows are released under their product": (
        "wgmma.wait(pending=0)\n                    last.release()",
        "last.release()",
    ),
    "sums of the tile before": ("slot.b, init=True)", "slot.b, init=e < 1)"),
    "columns of the tile after": ("copy(g.tile((bn, BLOCK), (j, k))", "copy(g.tile((bn, BLOCK), (j + 1, k))"),
    "both warpgroups store the first's rows": ("(2 * i + wg, j), boxes)", "(2 * i, j), boxes)"),
    "the last tile of columns is left out": ("ceil_div(D.shape[2], bn)", "D.shape[2] // bn"),
    "the last expert is left out": (
        "ceil_div(D.shape[2], bn), self.experts",
        "ceil_div(D.shape[2], bn), self.experts - 1",
    ),
    "stored to the expert before": ("boxes), D[e], boxes, wg)", "boxes), D[maximum(0, e - 1)], boxes, wg)"),
    "ones for experts without rows": ("                    acc[:] = 0.0", "                    acc[:] = 1.0"),
    "sums of the tile before for experts without rows": (
        "                    acc[:] = 0.0",
        "                    pass",
    ),
    "zeros for experts of one row": ("return first < end", "return first + 1 < end"),
    "products for experts without rows alone": ("return first < end", "return end <= first"),
    "a stage is released before it is read": ("wgmma.wait(pending=1)", "wgmma.wait(pending=2)"),
    "the last stage is not released": ("with when(blocks > 0):", "with when(blocks > 1):"),
    "the number of uses wraps": (
        "            assume(counts[0] * counts[1] * counts[2] * (most + 1) < 1 << 32)",
        "            pass",
    ),
    "tiles beyond 32 bits": ("assume(counts[0] * counts[1] * counts[2] < 1 << 24)", "pass"),
}
OF_THE_PROMISE: dict[str, tuple[str, str]] = {
    "experts in any order": ("promise(starts, ascending=True, first=0", "promise(starts, first=0"),
    "rows beyond the tensor": ("ascending=True, first=0, last=rows)", "ascending=True, first=0)"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*EDITS, *OF_THE_PROMISE])
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    module, edit = (claims, OF_THE_PROMISE[name]) if name in OF_THE_PROMISE else (schedule, EDITS[name])
    made = twin(FAMILIES[bf16], "columns_256", module, edit)
    verdict = verify_program(made, solver="z3", budget=NO_RUNS).verdict
    assert not isinstance(verdict, Proved), name


@pytest.mark.share(20, among="weights of groups")
def test_rows_of_a_neighbour_are_refused() -> None:
    made = twin(FAMILIES[bf16], "columns_256", schedule, EDITS["one tensor's rows are not masked"])
    assert not isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved)
